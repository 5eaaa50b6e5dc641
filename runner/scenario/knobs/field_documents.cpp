// SPDX-License-Identifier: MIT
// Writes the documentation of the fields as text; field_schema.cpp writes the schema.
#include "scenario/knobs/field_documents.h"

#include <fmt/format.h>

#include <algorithm>

#include "scenario/assertions/metric.h"
#include "scenario/familiar_words.h"
#include "scenario/knobs/field_value.h"
#include "scenario/knobs/fields.h"

namespace stepgate {
namespace {

std::string default_text(const Field& field) {
  return field_value_text(field, default_of(field));
}

// A name is asked for by a part of it, or by a word that people know it by.
bool matches(std::string_view name, std::string_view filter) {
  if (name.find(filter) != std::string_view::npos) return true;
  return std::ranges::any_of(names_for(filter), [&](std::string_view familiar) {
    return familiar.substr(0, familiar.find(" = ")) == name;
  });
}

// Whether the word means a kind of model, and the knob has an effect in steps of this kind, but not
// in those of all kinds.
bool is_of_that_kind(const Field& field, std::string_view word) {
  if (field.condition == nullptr) return false;
  const std::string_view familiar = choice_for("model.kind", word);
  const auto has_effect = [&](const Choice& kind) {
    Knobs knobs;
    knobs.model.kind = static_cast<ModelKind>(*kind.value);
    return field.condition->holds(knobs);
  };
  const auto kinds = field_named("model.kind")->values.choices;
  const auto kind = std::ranges::find(kinds, familiar.empty() ? word : familiar, &Choice::name);
  return kind != kinds.end() && has_effect(*kind) && !std::ranges::all_of(kinds, has_effect);
}

std::string choices_text(const Field& field) {
  std::string text;
  for (const Choice& choice : field.values.choices) {
    if (choice.value) text += fmt::format("{:<24} {:<16} {}\n", "", choice.name, choice.meaning);
  }
  return text;
}

}  // namespace

std::string fields_text(std::string_view filter) {
  std::string text;
  const FamiliarWord* familiar = familiar_word(filter);
  if (familiar != nullptr && !familiar->remark.empty())
    text += fmt::format("{}\n", familiar->remark);
  for (const Field& field : field_table()) {
    const bool asked_for = matches(field.name, filter) || is_of_that_kind(field, filter);
    if (!is_built(field) || !asked_for) continue;
    text += fmt::format("{:<22} {}\n{:<22} {}; default {}\n{}", field.name, meaning_of(field), "",
                        field_values_text(field.values), default_text(field), choices_text(field));
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
