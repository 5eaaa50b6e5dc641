// SPDX-License-Identifier: MIT
// Values as text. read_field_value.cpp reads them.
#include "scenario/knobs/field_value.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <nlohmann/json.hpp>

#include "base/text/nearest.h"
#include "base/text/units.h"

namespace stepgate {
namespace {

std::vector<std::string> built_choices(const FieldValues& values) {
  std::vector<std::string> names;
  for (const Choice& choice : values.choices) {
    if (choice.value) names.emplace_back(choice.name);
  }
  return names;
}

// A basic string of TOML, which JSON's strings are too.
std::string quoted(const std::string& text) {
  return nlohmann::json(text).dump();
}

}  // namespace

std::string limit_text(const FieldValues& values, double limit) {
  if (values.kind == FieldKind::bytes || values.kind == FieldKind::capacity)
    return bytes_text(static_cast<std::int64_t>(limit));
  if (values.kind == FieldKind::percent) return percent_text(limit);
  return values.kind == FieldKind::version ? fmt::format("{:.1f}", limit)
                                           : fmt::format("{}", limit);
}

std::string replacement_text(const KernelReplacement& replacement) {
  if (replacement.library.empty()) return quoted("ours");
  const std::string where = fmt::format("{}:{}", replacement.library, replacement.function);
  if (replacement == KernelReplacement{replacement.library, replacement.function})
    return quoted(where);
  std::string text = fmt::format("{{ library = {}", quoted(where));
  if (replacement.launches != 1) text += fmt::format(", launches = {}", replacement.launches);
  if (replacement.workspace_bytes != 0)
    text += fmt::format(", workspace = \"{}\"", bytes_text(replacement.workspace_bytes));
  if (replacement.microseconds) text += fmt::format(", time_us = {}", *replacement.microseconds);
  if (replacement.otherwise == Otherwise::ours) text += ", otherwise = \"ours\"";
  return text + " }";
}

std::string field_value_text(const Field& field, const FieldValue& value) {
  if (std::holds_alternative<std::monostate>(value)) return std::string(field.values.word);
  if (const auto* truth = std::get_if<bool>(&value)) return *truth ? "true" : "false";
  if (const auto* real = std::get_if<double>(&value)) {
    if (field.values.kind == FieldKind::percent) return percent_text(*real);
    return field.values.kind == FieldKind::version ? fmt::format("{:.1f}", *real)
                                                   : fmt::format("{}", *real);
  }
  if (const auto* cap = std::get_if<MemoryCap>(&value)) {
    if (cap->of == CapOf::bytes) return bytes_text(static_cast<std::int64_t>(cap->amount));
    return fmt::format("{:.10g}% of {}", 100 * cap->amount,
                       cap->of == CapOf::need ? "need" : "device");
  }
  if (const auto* list = std::get_if<std::vector<std::int64_t>>(&value)) {
    return fmt::format("[{}]", fmt::join(*list, ", "));
  }
  if (const auto* text = std::get_if<std::string>(&value)) return *text;
  if (const auto* words = std::get_if<ProgramWords>(&value)) {
    std::vector<std::string> entries;
    for (const std::string& word : *words) entries.push_back(quoted(word));
    return fmt::format("[{}]", fmt::join(entries, ", "));
  }
  if (const auto* variables = std::get_if<ProgramVariables>(&value)) {
    std::vector<std::string> entries;
    for (const auto& [name, text] : *variables)
      entries.push_back(fmt::format("{} = {}", name, quoted(text)));
    return fmt::format("{{ {} }}", fmt::join(entries, ", "));
  }
  if (const auto* replaced = std::get_if<ReplacedKernels>(&value)) {
    std::vector<std::string> entries;
    for (const auto& [name, replacement] : *replaced)
      entries.push_back(fmt::format("{} = {}", name, replacement_text(replacement)));
    return fmt::format("{{ {} }}", fmt::join(entries, ", "));
  }
  const std::int64_t whole = std::get<std::int64_t>(value);
  if (field.values.kind == FieldKind::bytes) return bytes_text(whole);
  for (const Choice& choice : field.values.choices) {
    if (choice.value == whole) return std::string(choice.name);
  }
  return std::to_string(whole);
}

std::string field_values_text(const FieldValues& values) {
  std::string text;
  switch (values.kind) {
    case FieldKind::boolean:
      text = "true or false";
      break;
    case FieldKind::choice:
      text = either(built_choices(values));
      break;
    case FieldKind::capacity:
      text = fmt::format("{} to {}, or a share as \"105% of need\" or \"60% of device\"",
                         bytes_text(static_cast<std::int64_t>(values.least)),
                         bytes_text(static_cast<std::int64_t>(values.most)));
      break;
    case FieldKind::integers:
      text = fmt::format("a list of {} to {} numbers, each {} to {}", fewest_in_list, most_in_list,
                         limit_text(values, values.least), limit_text(values, values.most));
      break;
    case FieldKind::text:
      text = "a string";
      break;
    case FieldKind::words:
      text = "a list of strings";
      break;
    case FieldKind::variables:
      text = "a table of strings";
      break;
    case FieldKind::kernels:
      text = "a table of kernels, each \"LIBRARY\" or \"LIBRARY:FUNCTION\"";
      break;
    default:
      text = fmt::format("{} to {}", limit_text(values, values.least),
                         limit_text(values, values.most));
  }
  if (values.multiple_of != 1) text += fmt::format(", a multiple of {}", values.multiple_of);
  if (!values.word.empty()) text += fmt::format(", or {}", values.word);
  return text;
}

}  // namespace stepgate
