// SPDX-License-Identifier: MIT
// The same table and the same checks as for files; the place is the argument itself.
#include "scenario/read/read_override.h"

#include <fmt/format.h>

#include "base/text/nearest.h"
#include "scenario/knobs/field_value.h"

namespace stepgate {
namespace {

// Null, and one more diagnostic, when no such field can be set.
const Field* settable_field(std::string_view name, const Place& place,
                            std::vector<Diagnostic>& diagnostics) {
  const Field* field = field_named(name);
  if (field != nullptr && is_built(*field)) return field;
  if (field != nullptr) {
    diagnostics.push_back(
        {place, fmt::format("'{}' is not built yet", name), std::string(see_fields)});
    return nullptr;
  }
  std::vector<std::string_view> names;
  for (const Field& row : field_table()) names.push_back(row.name);
  diagnostics.push_back({place, fmt::format("unknown key '{}'", name),
                         did_you_mean(name, names, std::string(see_fields))});
  return nullptr;
}

}  // namespace

std::optional<Setting> read_override(std::string_view argument,
                                     std::vector<Diagnostic>& diagnostics) {
  const Place place{fmt::format("--set {}", argument), 0, 0};
  const std::size_t equals = argument.find('=');
  if (equals == std::string_view::npos) {
    diagnostics.push_back({place, "no '=' in it", "write --set batch.size=128"});
    return std::nullopt;
  }
  const Field* field = settable_field(argument.substr(0, equals), place, diagnostics);
  if (field == nullptr) return std::nullopt;
  const TomlValue written = toml_of_argument(*field, argument.substr(equals + 1), place);
  auto value = read_field_value(*field, written, diagnostics);
  if (!value) return std::nullopt;
  return Setting{field, std::move(*value), place};
}

}  // namespace stepgate
