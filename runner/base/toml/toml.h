// SPDX-License-Identifier: MIT
// TOML as a plain tree with the position of every key and value. Callers decide which keys are
// allowed and what they mean.
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
struct TomlDate {};  // dates and times are parsed but not used
using TomlArray = std::vector<TomlValue>;
// A table in the order of the file. Headers, dotted keys and inline tables are merged as TOML
// defines.
using TomlTable = std::vector<TomlEntry>;

struct TomlValue {
  std::variant<std::string, std::int64_t, double, bool, TomlDate, TomlArray, TomlTable> content;
  Place place;       // of the value's first character
  Place text_place;  // of the first character of a string, behind the quotes
};

struct TomlEntry {
  std::string key;
  Place place;  // of the key
  TomlValue value;
};

// Names the type for messages: "a string", "a whole number", "a table".
std::string_view type_text(const TomlValue&);

// Returns nullptr when the table has no such key.
const TomlEntry* find(const TomlTable&, std::string_view key);

// Parses a text. Returns nullopt, and adds a diagnostic, when it is not UTF-8 or not TOML. `file`
// is the name of the file in places.
std::optional<TomlTable> parse_toml(std::string_view text, const std::string& file,
                                    std::vector<Diagnostic>& diagnostics);

// Parses a file; `what` names its kind in messages: "a baseline". Throws RequestError when it
// cannot be read, is larger than 1 MiB, or is not TOML. Such messages show no text of the file.
TomlTable read_toml(const std::filesystem::path&, std::string_view what);

}  // namespace stepgate
