// SPDX-License-Identifier: MIT
// Applies the rules and places what is broken. The rules are in knobs_without_effect.cpp and
// knobs_that_clash.cpp.
#include "scenario/knobs/check_knobs.h"

#include "scenario/knobs/knob_rules.h"

namespace stepgate {

void check_knobs(const Knobs& knobs, const SettingPlaces& places, const Place& variant,
                 std::vector<Diagnostic>& diagnostics) {
  for (const KnobRule& rule : knobs_without_effect()) {
    const auto place = places.find(rule.field);
    if (place == places.end() || !rule.broken(knobs)) continue;
    diagnostics.push_back({place->second, std::string(rule.message), std::string(rule.hint)});
  }
  for (const KnobRule& rule : knobs_that_clash()) {
    if (!rule.broken(knobs)) continue;
    const auto place = places.find(rule.field);
    diagnostics.push_back({place != places.end() ? place->second : variant,
                           std::string(rule.message), std::string(rule.hint)});
  }
}

}  // namespace stepgate
