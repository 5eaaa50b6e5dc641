// SPDX-License-Identifier: MIT
// Writes the documentation of the fields as text; field_schema.cpp writes the schema.
#include "scenario/knobs/field_documents.h"

#include <fmt/format.h>

#include "scenario/assertions/metric.h"
#include "scenario/knobs/field_value.h"
#include "scenario/knobs/fields.h"

namespace stepgate {
namespace {

std::string default_text(const Field& field) {
  return field_value_text(field, default_of(field));
}

bool matches(std::string_view name, std::string_view filter) {
  return name.find(filter) != std::string_view::npos;
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

}  // namespace stepgate
