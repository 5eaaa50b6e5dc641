// SPDX-License-Identifier: MIT
#include "verbs/mutate/faults_of_files.h"

#include <algorithm>
#include <utility>

namespace stepgate {

void FaultsOfFiles::add(const Scenario& scenario, std::vector<Diagnostic> faults) {
  Found found{{}, std::move(faults)};
  for (const auto* assertions : {&scenario.regime, &scenario.expect})
    for (const Expectation& assertion : *assertions) found.assertions.push_back(assertion.place);
  by_file_[scenario.file].push_back(std::move(found));
}

std::vector<Diagnostic> FaultsOfFiles::all() const {
  std::vector<Diagnostic> all;
  for (const auto& [file, scenarios] : by_file_) {
    const auto add_if_all_have_it = [&, &scenarios = scenarios](const Diagnostic& fault) {
      const auto is_there = [&](const Diagnostic& one) { return one.place == fault.place; };
      if (std::ranges::any_of(all, [&](const Diagnostic& one) { return one == fault; })) return;
      const auto is_about = [&](const Found& found) {
        return std::ranges::find(found.assertions, fault.place) != found.assertions.end();
      };
      const bool is_of_an_assertion = std::ranges::any_of(scenarios, is_about);
      if (std::ranges::all_of(scenarios, [&](const Found& found) {
            return (is_of_an_assertion && !is_about(found)) ||
                   std::ranges::any_of(found.faults, is_there);
          }))
        all.push_back(fault);
    };
    std::vector<Place> told;
    for (const Found& found : scenarios) {
      for (const Diagnostic& fault : found.faults) {
        if (std::ranges::find(told, fault.place) != told.end() && scenarios.size() > 1) continue;
        told.push_back(fault.place);
        add_if_all_have_it(fault);
      }
    }
  }
  return all;
}

}  // namespace stepgate
