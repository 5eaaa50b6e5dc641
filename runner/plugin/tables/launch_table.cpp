// SPDX-License-Identifier: MIT
#include "plugin/tables/launch_table.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>
#include <utility>
#include <variant>

#include "base/text/enumerators.h"
#include "base/text/nearest.h"

namespace stepgate {
namespace {

constexpr std::string_view way_out = "docs/kernels.md has such a table";

}  // namespace

std::string text_of(const LaunchArgument& argument) {
  if (argument.type == ArgumentType::pointer) return argument.value;
  return fmt::format("{}:{}", argument.value,
                     enumerators<ArgumentType>[static_cast<std::size_t>(argument.type)]);
}

std::vector<std::string_view> operands_of(const Kernel& kernel) {
  std::vector<std::string_view> names;
  for (const KernelOperand& operand : kernel.operands) names.push_back(operand.name);
  return names;
}

LaunchTable::LaunchTable(const TomlTable& table, const Place& place, std::string what,
                         std::vector<Diagnostic>& faults)
    : keys_(table, place, std::move(what), faults, way_out), faults_(faults) {}

// The text of each element of a list.
std::vector<const TomlValue*> LaunchTable::texts(const TomlEntry& entry, std::string_view wanted) {
  std::vector<const TomlValue*> all;
  const auto* list = std::get_if<TomlArray>(&entry.value.content);
  if (list != nullptr) {
    for (const TomlValue& value : *list)
      if (std::holds_alternative<std::string>(value.content)) all.push_back(&value);
  }
  if (list == nullptr || list->size() != all.size()) keys_.wrong_type(entry, wanted);
  return all;
}

// The value of the enum with that name; a fault where there is none.
template <class Enum>
std::optional<Enum> LaunchTable::one_of(std::string_view name, std::string fact,
                                        const TomlValue& value) {
  const auto& names = enumerators<Enum>;
  const auto known = std::ranges::find(names, name);
  if (known != names.end()) return static_cast<Enum>(known - names.begin());
  faults_.push_back(
      {value.text_place, std::move(fact),
       did_you_mean(name, names, fmt::format("there are {}", fmt::join(names, ", ")))});
  return std::nullopt;
}

std::vector<LaunchArgument> LaunchTable::arguments() {
  std::vector<LaunchArgument> all;
  const TomlEntry* entry = keys_.required("arguments");
  if (entry == nullptr) return all;
  for (const TomlValue* value : texts(*entry, "a list of words such as \"columns:i32\"")) {
    const auto& text = std::get<std::string>(value->content);
    const std::size_t colon = text.rfind(':');
    if (colon == std::string::npos) {
      all.push_back({.value = text});
      continue;
    }
    const std::string name = text.substr(colon + 1);
    const auto type =
        one_of<ArgumentType>(name, fmt::format("'{}' has no type '{}'", text, name), *value);
    if (type) all.push_back({.value = text.substr(0, colon), .type = *type});
  }
  return all;
}

Supported LaunchTable::supported() {
  Supported all;
  if (const TomlEntry* entry = keys_.optional("dtypes")) {
    for (const TomlValue* value : texts(*entry, "a list of dtypes")) {
      const auto& text = std::get<std::string>(value->content);
      if (const auto dtype = one_of<DType>(text, fmt::format("no dtype '{}'", text), *value))
        all.dtypes.push_back(*dtype);
    }
  }
  if (const TomlEntry* entry = keys_.optional("supports")) {
    const auto* names = std::get_if<TomlTable>(&entry->value.content);
    if (names == nullptr)
      keys_.wrong_type(*entry, "a table such as { columns = { multiple_of = 8 } }");
    for (const TomlEntry& name : names ? *names : TomlTable()) all.limits.push_back(limits(name));
  }
  return all;
}

SizeLimits LaunchTable::limits(const TomlEntry& entry) {
  SizeLimits limits{.name = entry.key};
  const auto* table = std::get_if<TomlTable>(&entry.value.content);
  if (table == nullptr) {
    keys_.wrong_type(entry, "a table such as { multiple_of = 8 }");
    return limits;
  }
  TomlKeys keys(*table, entry.value.place, fmt::format("the limits of '{}'", entry.key), faults_,
                way_out);
  constexpr double most = 1e15;
  std::optional<double> least, largest, multiple;
  keys.number_if_any("at_least", -most, most, least);
  keys.number_if_any("at_most", -most, most, largest);
  keys.number_if_any("multiple_of", 1, most, multiple);
  keys.refuse_the_rest();
  limits.at_least = least.value_or(limits.at_least);
  limits.at_most = largest.value_or(limits.at_most);
  limits.multiple_of = static_cast<std::int64_t>(multiple.value_or(1));
  return limits;
}

}  // namespace stepgate
