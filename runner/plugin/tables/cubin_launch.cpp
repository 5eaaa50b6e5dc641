// SPDX-License-Identifier: MIT
#include "plugin/tables/cubin_launch.h"

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

constexpr std::size_t most_dimensions = 3;

enum class Need { required, optional };

// A whole number or an expression, or up to three of them.
std::vector<std::string> expressions(TomlKeys& keys, std::string_view key, Need need) {
  const TomlEntry* entry = need == Need::required ? keys.required(key) : keys.optional(key);
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
    keys.wrong_type(*entry, most == 1 ? "a number, or text such as \"4 * columns\""
                                      : "a number, text such as \"ceil(rows / 4)\", or a list "
                                        "of up to three");
  }
  return all;
}

}  // namespace

std::string text_of(const CubinLaunch& launch) {
  std::vector<std::string> arguments;
  for (const LaunchArgument& argument : launch.arguments) arguments.push_back(text_of(argument));
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
  LaunchTable reader(table, place, "a launch of a cubin", faults);
  TomlKeys& keys = reader.keys();
  CubinLaunch launch;
  keys.text("cubin", launch.cubin);
  keys.text_if_any("metadata", launch.metadata);
  if (launch.metadata.empty()) {  // which has these three
    keys.text("entry", launch.entry);
    launch.block = expressions(keys, "block", Need::required);
    const auto shared = expressions(keys, "shared", Need::optional);
    if (!shared.empty()) launch.shared = shared.front();
  }
  launch.grid = expressions(keys, "grid", Need::required);
  launch.arguments = reader.arguments();
  launch.supported = reader.supported();
  keys.refuse_the_rest();
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
