// SPDX-License-Identifier: MIT
#include "history/record/environment_text.h"

#include <fmt/format.h>

#include "support/toml/toml_text.h"

namespace stepgate {

std::string environment_text(const Environment& environment) {
  std::string text;
  for (const EnvironmentKey& key : environment_keys()) {
    if (key.is_optional && (environment.*key.value).empty()) continue;
    text += fmt::format("{} = {}\n", key.name, toml_string(environment.*key.value));
  }
  return text;
}

Environment read_environment(TomlKeys& of, TomlKeys::Faults& faults, std::string_view way_out) {
  Environment environment;
  const TomlEntry* entry = of.required("environment");
  if (entry == nullptr) return environment;
  const auto* table = std::get_if<TomlTable>(&entry->value.content);
  if (table == nullptr) {
    of.wrong_type(*entry, "a table");
    return environment;
  }
  TomlKeys keys(*table, entry->place, "an environment", faults, way_out);
  for (const EnvironmentKey& key : environment_keys()) {
    if (key.is_optional) {
      keys.text_if_any(key.name, environment.*key.value);
    } else {
      keys.text(key.name, environment.*key.value);
    }
  }
  keys.refuse_the_rest();
  return environment;
}

}  // namespace stepgate
