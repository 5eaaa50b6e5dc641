// SPDX-License-Identifier: MIT
// One value of one field: from TOML, with its type and range checked, and back to text. The field
// table says where the value is stored.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/toml/toml.h"
#include "scenario/knobs/fields.h"

namespace stepgate {

// Reads a value. Returns nullopt, and adds a diagnostic at the value's place, when the field cannot
// hold it. The field must be implemented.
std::optional<FieldValue> read_field_value(const Field&, const TomlValue&,
                                           std::vector<Diagnostic>& diagnostics);

// Converts a command-line argument to what the field reads: 2, true and 0.5 as such, all else as a
// string.
TomlValue toml_of_argument(const Field&, std::string_view text, const Place&);

// Limits of a list's length.
inline constexpr std::size_t fewest_in_list = 2;
inline constexpr std::size_t most_in_list = 64;

// A least or most value as a file writes it.
std::string limit_text(const FieldValues&, double limit);

// The value as a file writes it, strings without quotes: "pinned", "64 KiB", "2", "auto".
std::string field_value_text(const Field&, const FieldValue&);

// "build/libmine.so:norm" in quotes, or a table where there is more to say.
std::string replacement_text(const KernelReplacement&);

// The values that the field accepts: "1 to 4", "static, cuda or cuda_async".
std::string field_values_text(const FieldValues&);

}  // namespace stepgate
