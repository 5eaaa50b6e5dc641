// SPDX-License-Identifier: MIT
#include "scenario/read/lint.h"

#include <algorithm>

namespace stepgate {

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

}  // namespace stepgate
