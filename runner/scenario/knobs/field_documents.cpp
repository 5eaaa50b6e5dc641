// SPDX-License-Identifier: MIT
// Text and Markdown; field_schema.cpp writes the schema.
#include "scenario/knobs/field_documents.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <vector>

#include "scenario/knobs/field_value.h"
#include "scenario/knobs/fields.h"
#include "scenario/sentences/metric.h"

namespace stepgate {
namespace {

std::string default_text(const Field& field) {
  return field_value_text(field, default_of(field));
}

bool matches(std::string_view name, std::string_view filter) {
  return name.find(filter) != std::string_view::npos;
}

// Fields and choices that files may not use yet.
std::vector<std::string> names_not_built() {
  std::vector<std::string> names;
  for (const Field& field : field_table()) {
    if (!is_built(field)) names.emplace_back(field.name);
    for (const Choice& choice : field.values.choices) {
      if (!choice.value) names.push_back(fmt::format("{} = \"{}\"", field.name, choice.name));
    }
  }
  return names;
}

std::string markdown_of_group(const FieldGroup& group) {
  std::string rows;
  for (const Field& field : field_table()) {
    if (group_of(field) != group.name || !is_built(field)) continue;
    rows += fmt::format("| `{}` | {} | `{}` | {} |\n", field.name, field_values_text(field.values),
                        default_text(field), meaning_of(field));
  }
  if (rows.empty()) return rows;
  return fmt::format(
      "### `[{}]`: {}\n\n| knob | values | default | meaning |\n|---|---|---|---|\n{}\n",
      group.name, group.meaning, rows);
}

}  // namespace

std::string fields_text(std::string_view filter) {
  std::string text;
  for (const Field& field : field_table()) {
    const bool asked_for = matches(field.name, filter);
    if (!is_built(field) || !asked_for) continue;
    text += fmt::format("{:<22} {}\n{:<22} {}; default {}\n", field.name, meaning_of(field), "",
                        field_values_text(field.values), default_text(field));
  }
  std::string metrics;
  for (const MetricRow& row : metric_table()) {
    if (!matches(row.name, filter)) continue;
    metrics += fmt::format("{:<26} {:<7} {}\n", row.name, name_of(row.evidence), row.meaning);
  }
  if (!metrics.empty()) text += fmt::format("{}metrics:\n{}", text.empty() ? "" : "\n", metrics);
  return text;
}

std::string fields_markdown() {
  std::string text;
  for (const FieldGroup& group : field_groups()) text += markdown_of_group(group);
  text += "### Metrics of sentences\n\n| metric | evidence | meaning |\n|---|---|---|\n";
  for (const MetricRow& row : metric_table()) {
    text += fmt::format("| `{}` | {} | {} |\n", row.name, name_of(row.evidence), row.meaning);
  }
  text += fmt::format("\n### Not built yet\n\nRefused by name, with the line:\n`{}`.\n",
                      fmt::join(names_not_built(), "`, `"));
  return text;
}

}  // namespace stepgate
