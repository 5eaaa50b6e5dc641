// SPDX-License-Identifier: MIT
// TOML as a plain tree that remembers where every key and value stood. What keys mean, and which
// are allowed, is for others.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/text/diagnostic.h"

namespace stepgate {

struct TomlValue;
struct TomlEntry;
struct TomlDate {};  // dates and times: recognised, never read
using TomlArray = std::vector<TomlValue>;
// In the file's order. Headers, dotted keys and inline tables are merged as TOML says.
using TomlTable = std::vector<TomlEntry>;

struct TomlValue {
  std::variant<std::string, std::int64_t, double, bool, TomlDate, TomlArray, TomlTable> content;
  Place place;       // of its first character
  Place text_place;  // of a string's first character inside the quotes
};

struct TomlEntry {
  std::string key;
  Place place;  // of the key
  TomlValue value;
};

// "a string", "a whole number", "a table", ...: for messages.
std::string_view type_text(const TomlValue&);

// Null when the table has no such key.
const TomlEntry* find(const TomlTable&, std::string_view key);

// The tree of a text; nothing, and one more diagnostic, when it is not UTF-8 or not TOML. `file` is
// the name that places show.
std::optional<TomlTable> parse_toml(std::string_view text, const std::string& file,
                                    std::vector<Diagnostic>& diagnostics);

// The tree of a file; `what` names its kind in messages: "a baseline". Throws RequestError when it
// cannot be read, is larger than 1 MiB, or is not TOML.
TomlTable read_toml(const std::filesystem::path&, std::string_view what);

}  // namespace stepgate
