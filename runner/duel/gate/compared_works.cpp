// SPDX-License-Identifier: MIT
#include "duel/gate/compared_works.h"

#include <fnmatch.h>

#include <algorithm>
#include <iterator>
#include <string_view>

#include "support/text/diagnostic.h"
#include "support/text/nearest.h"

namespace stepgate {
namespace {

bool matches(const std::string& pattern, const std::string& work) {
  return ::fnmatch(pattern.c_str(), work.c_str(), 0) == 0;
}

}  // namespace

bool is_wanted(std::span<const std::string> patterns, const std::string& work) {
  return patterns.empty() || std::ranges::any_of(patterns, [&](const std::string& pattern) {
           return matches(pattern, work);
         });
}

std::vector<std::string> works_of(std::span<const Scenario> scenarios) {
  std::vector<std::string> works;
  for (const Scenario& scenario : scenarios) {
    for (const Variant& variant : scenario.variants)
      works.push_back(scenario.name + "/" + variant.name);
  }
  return works;
}

std::map<std::string, double> wider_margins(std::span<const Scenario> scenarios,
                                            std::span<const std::string> patterns, double margin) {
  std::map<std::string, double> wider;
  for (const Scenario& scenario : scenarios) {
    if (is_planned_only(scenario)) continue;
    for (const Variant& variant : scenario.variants) {
      const std::string work = scenario.name + "/" + variant.name;
      if (is_wanted(patterns, work) && variant.gate.margin > margin)
        wider[work] = *variant.gate.margin;
    }
  }
  return wider;
}

void refuse_unmatched(std::span<const std::string> patterns, std::span<const std::string> works) {
  const std::vector<std::string_view> names(works.begin(), works.end());
  for (const std::string& pattern : patterns) {
    if (std::ranges::none_of(works,
                             [&](const std::string& work) { return matches(pattern, work); }))
      throw RequestError("no work is named '" + pattern + "'",
                         did_you_mean(pattern, names, "a work is SCENARIO/VARIANT"));
  }
}

std::vector<std::string> works_in_common(const Introduction& both,
                                         const std::vector<std::string> Hello::*list,
                                         std::span<const std::string> patterns) {
  std::vector<std::string> works;
  const std::vector<std::string>& others = both.head.*list;
  std::ranges::copy_if(both.base.*list, std::back_inserter(works), [&](const std::string& work) {
    return std::ranges::find(others, work) != others.end() && is_wanted(patterns, work);
  });
  return works;
}

}  // namespace stepgate
