// SPDX-License-Identifier: MIT
// Applies the conditions of the field table and the rules of knobs_that_clash.cpp, and places what
// is broken.
#include "scenario/knobs/check_knobs.h"

#include <fmt/format.h>

#include "scenario/knobs/fields.h"
#include "scenario/knobs/knob_rules.h"

namespace stepgate {
namespace {

// The message that a knob has no effect: "'alloc.round' is only for caching and expandable".
std::string no_effect(const Field& field, const KnobCondition& condition) {
  if (!condition.message.empty()) return fmt::format(fmt::runtime(condition.message), field.name);
  std::string all(condition.only_for);
  if (const auto comma = all.rfind(", "); comma != all.npos) all.replace(comma, 2, " and ");
  return fmt::format("'{}' is only for {}", field.name, all);
}

}  // namespace

void check_knobs(const Knobs& knobs, const SettingPlaces& places, const Place& variant,
                 std::vector<Diagnostic>& diagnostics) {
  for (const Field& field : field_table()) {
    if (field.condition == nullptr || field.condition->holds(knobs)) continue;
    const auto place = places.find(field.name);
    if (place == places.end()) continue;
    diagnostics.push_back(
        {place->second, no_effect(field, *field.condition), std::string(field.condition->hint)});
  }
  for (const KnobRule& rule : knobs_that_clash()) {
    if (!rule.broken(knobs)) continue;
    const auto place = places.find(rule.field);
    diagnostics.push_back({place != places.end() ? place->second : variant,
                           std::string(rule.message), std::string(rule.hint)});
  }
}

}  // namespace stepgate
