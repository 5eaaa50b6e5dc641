// SPDX-License-Identifier: MIT
#include "plugin/cubin_launch.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>
#include <variant>

#include "base/text/enumerators.h"
#include "base/text/json_nesting.h"
#include "base/text/nearest.h"
#include "base/toml/toml_keys.h"
#include "plugin/library_file.h"

namespace stepgate {
namespace {

constexpr std::string_view page = "docs/kernels.md has such a table";
constexpr std::size_t most_dimensions = 3;

class LaunchReader {
 public:
  LaunchReader(const TomlTable& table, const Place& place, std::vector<Diagnostic>& faults)
      : keys_(table, place, "a launch of a cubin", faults, page), faults_(faults) {}

  CubinLaunch read() {
    CubinLaunch launch;
    keys_.text("cubin", launch.cubin);
    keys_.text_if_any("metadata", launch.metadata);
    if (launch.metadata.empty()) {  // which has these three
      keys_.text("entry", launch.entry);
      launch.block = expressions("block", true);
      const auto shared = expressions("shared", false);
      if (!shared.empty()) launch.shared = shared.front();
    }
    launch.grid = expressions("grid", true);
    arguments(launch);
    dtypes(launch);
    supports(launch);
    keys_.refuse_the_rest();
    return launch;
  }

 private:
  // The text of each element of a list.
  std::vector<const TomlValue*> texts(const TomlEntry& entry, std::string_view wanted) {
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
  std::optional<Enum> one_of(std::string_view name, std::string fact, const TomlValue& value) {
    const auto& names = enumerators<Enum>;
    const auto known = std::ranges::find(names, name);
    if (known != names.end()) return static_cast<Enum>(known - names.begin());
    faults_.push_back(
        {value.text_place, std::move(fact),
         did_you_mean(name, names, fmt::format("there are {}", fmt::join(names, ", ")))});
    return std::nullopt;
  }

  void arguments(CubinLaunch& launch) {
    const TomlEntry* entry = keys_.required("arguments");
    if (entry == nullptr) return;
    for (const TomlValue* value : texts(*entry, "a list of words such as \"columns:i32\"")) {
      const auto& text = std::get<std::string>(value->content);
      const std::size_t colon = text.rfind(':');
      if (colon == std::string::npos) {
        launch.arguments.push_back({.value = text});
        continue;
      }
      const std::string name = text.substr(colon + 1);
      const auto type =
          one_of<ArgumentType>(name, fmt::format("'{}' has no type '{}'", text, name), *value);
      if (type) launch.arguments.push_back({.value = text.substr(0, colon), .type = *type});
    }
  }

  void dtypes(CubinLaunch& launch) {
    const TomlEntry* entry = keys_.optional("dtypes");
    if (entry == nullptr) return;
    for (const TomlValue* value : texts(*entry, "a list of dtypes")) {
      const auto& text = std::get<std::string>(value->content);
      if (const auto dtype = one_of<DType>(text, fmt::format("no dtype '{}'", text), *value))
        launch.supported.dtypes.push_back(*dtype);
    }
  }

  void supports(CubinLaunch& launch) {
    const TomlEntry* entry = keys_.optional("supports");
    if (entry == nullptr) return;
    const auto* names = std::get_if<TomlTable>(&entry->value.content);
    if (names == nullptr)
      return keys_.wrong_type(*entry, "a table such as { columns = { multiple_of = 8 } }");
    for (const TomlEntry& name : *names) launch.supported.limits.push_back(limits(name));
  }

  // A whole number or an expression, or up to three of them.
  std::vector<std::string> expressions(std::string_view key, bool is_required) {
    const TomlEntry* entry = is_required ? keys_.required(key) : keys_.optional(key);
    if (entry == nullptr) return {};
    std::vector<std::string> all;
    const auto add = [&](const TomlValue& value) {
      if (const auto* text = std::get_if<std::string>(&value.content)) all.push_back(*text);
      if (const auto* number = std::get_if<std::int64_t>(&value.content))
        all.push_back(fmt::format("{}", *number));
    };
    std::size_t given = 1;
    if (const auto* list = std::get_if<TomlArray>(&entry->value.content)) {
      given = list->size();
      for (const TomlValue& value : *list) add(value);
    } else {
      add(entry->value);
    }
    const std::size_t most = key == "shared" ? 1 : most_dimensions;
    if (all.size() != given || all.empty() || all.size() > most) {
      keys_.wrong_type(*entry, most == 1 ? "a number, or text such as \"4 * columns\""
                                         : "a number, text such as \"ceil(rows / 4)\", or a list "
                                           "of up to three");
    }
    return all;
  }

  SizeLimits limits(const TomlEntry& entry) {
    SizeLimits limits{.name = entry.key};
    const auto* table = std::get_if<TomlTable>(&entry.value.content);
    if (table == nullptr) {
      keys_.wrong_type(entry, "a table such as { multiple_of = 8 }");
      return limits;
    }
    TomlKeys keys(*table, entry.value.place, fmt::format("the limits of '{}'", entry.key), faults_,
                  page);
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

  TomlKeys keys_;
  std::vector<Diagnostic>& faults_;
};

}  // namespace

std::string text_of(const CubinArgument& argument) {
  if (argument.type == ArgumentType::pointer) return argument.value;
  return fmt::format("{}:{}", argument.value,
                     enumerators<ArgumentType>[static_cast<std::size_t>(argument.type)]);
}

std::string text_of(const CubinLaunch& launch) {
  std::vector<std::string> arguments;
  for (const CubinArgument& argument : launch.arguments) arguments.push_back(text_of(argument));
  const auto three = [](const std::vector<std::string>& expressions) {
    return expressions.size() == 1 ? expressions.front()
                                   : fmt::format("({})", fmt::join(expressions, ", "));
  };
  return fmt::format("{}<<<{}, {}, {}>>>({})", launch.entry, three(launch.grid),
                     three(launch.block), launch.shared, fmt::join(arguments, ", "));
}

std::optional<CubinLaunch> read_cubin_launch(const TomlTable& table, const Place& place,
                                             std::vector<Diagnostic>& faults) {
  const std::size_t before = faults.size();
  CubinLaunch launch = LaunchReader(table, place, faults).read();
  return faults.size() == before ? std::optional(std::move(launch)) : std::nullopt;
}

void take_metadata(CubinLaunch& launch, std::string_view text) {
  using Json = nlohmann::json;
  const auto refuse = [&](std::string_view fact, std::string_view way_out) {
    throw KernelLibraryError(fmt::format("'{}' {}", launch.metadata, fact), std::string(way_out));
  };
  const Json metadata =
      nests_too_deep(text) ? Json() : Json::parse(text, nullptr, /*allow_exceptions=*/false);
  const auto number = [&](const char* key, std::int64_t otherwise) {
    const auto found = metadata.find(key);
    if (found == metadata.end() || found->is_null()) return otherwise;
    if (!found->is_number_unsigned())
      refuse(fmt::format("has no whole number as '{}'", key), "let Triton write it again");
    return static_cast<std::int64_t>(
        std::min<std::uint64_t>(found->get<std::uint64_t>(), 1U << 30));
  };
  if (!metadata.is_object() || !metadata.contains("name") || !metadata["name"].is_string() ||
      !metadata.contains("num_warps") || !metadata.contains("shared")) {
    refuse("is no metadata of Triton: an object with name, num_warps and shared",
           "name the .json that lies beside the cubin in Triton's cache");
  }
  constexpr std::string_view by_library = "launch it from a library (docs/kernels.md)";
  if (number("global_scratch_size", 0) > 0)
    refuse("says that the kernel needs global scratch memory", by_library);
  if (number("num_ctas", 1) > 1) refuse("says that the kernel runs in clusters", by_library);
  const auto maps = metadata.find("tensordesc_meta");
  if (maps != metadata.end() && !maps->is_null() && !maps->empty())
    refuse("says that the kernel takes tensor maps", by_library);
  constexpr std::int64_t lanes = 32;
  launch.entry = metadata["name"].get<std::string>();
  launch.block = {fmt::format("{}", lanes * number("num_warps", 0))};
  launch.shared = fmt::format("{}", number("shared", 0));
}

}  // namespace stepgate
