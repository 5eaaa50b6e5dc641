// SPDX-License-Identifier: MIT
#include "scenario/read/lint.h"

#include <algorithm>

namespace stepgate {
namespace {

bool is_compared(const Scenario& scenario, const std::string& left, const std::string& right) {
  return std::ranges::any_of(scenario.expect, [&](const Expectation& sentence) {
    return names_variant(sentence, left) && names_variant(sentence, right);
  });
}

}  // namespace

std::vector<Diagnostic> lint(const Scenario& scenario) {
  std::vector<Diagnostic> warnings = scenario.former_names;
  const bool counts = std::any_of(
      scenario.expect.begin(), scenario.expect.end(),
      [](const Expectation& sentence) { return evidence_of(sentence) <= Evidence::exact; });
  if (counts) return warnings;
  const Place place =
      scenario.expect.empty() ? Place{scenario.file, 0, 0} : scenario.expect.front().place;
  warnings.push_back(
      {place, "[expect] has no exact sentence: a timed one says how much, not why",
       "add a count, such as " + scenario.variants.back().name + ".host_waits_per_step == 0"});
  return warnings;
}

std::vector<Diagnostic> identical_variants(const Scenario& scenario) {
  std::vector<Diagnostic> found;
  for (auto later = scenario.variants.begin(); later != scenario.variants.end(); ++later) {
    const auto earlier =
        std::find_if(scenario.variants.begin(), later,
                     [&](const Variant& variant) { return variant.knobs == later->knobs; });
    if (earlier == later || is_compared(scenario, earlier->name, later->name)) continue;
    found.push_back({later->place,
                     "variant '" + later->name + "' is the same step as '" + earlier->name + "'",
                     "remove one, or claim in a sentence that they tie"});
  }
  return found;
}

}  // namespace stepgate
