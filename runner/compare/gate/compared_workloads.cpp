// SPDX-License-Identifier: MIT
#include "compare/gate/compared_workloads.h"

#include <fnmatch.h>

#include <algorithm>
#include <iterator>
#include <string_view>

#include "base/text/diagnostic.h"
#include "base/text/nearest.h"

namespace stepgate {
namespace {

bool matches(const std::string& pattern, const std::string& workload) {
  return ::fnmatch(pattern.c_str(), workload.c_str(), 0) == 0;
}

}  // namespace

bool is_wanted(std::span<const std::string> patterns, const std::string& workload) {
  return patterns.empty() || std::ranges::any_of(patterns, [&](const std::string& pattern) {
           return matches(pattern, workload);
         });
}

std::vector<std::string> workloads_of(std::span<const Scenario> scenarios) {
  std::vector<std::string> workloads;
  for (const Scenario& scenario : scenarios) {
    for (const Variant& variant : scenario.variants)
      workloads.push_back(scenario.name + "/" + variant.name);
  }
  return workloads;
}

std::map<std::string, double> wider_margins(std::span<const Scenario> scenarios,
                                            std::span<const std::string> patterns, double margin) {
  std::map<std::string, double> wider;
  for (const Scenario& scenario : scenarios) {
    if (is_planned_only(scenario)) continue;
    for (const Variant& variant : scenario.variants) {
      const std::string workload = scenario.name + "/" + variant.name;
      if (is_wanted(patterns, workload) && variant.gate.margin > margin)
        wider[workload] = *variant.gate.margin;
    }
  }
  return wider;
}

void refuse_unmatched(std::span<const std::string> patterns,
                      std::span<const std::string> workloads) {
  const std::vector<std::string_view> names(workloads.begin(), workloads.end());
  for (const std::string& pattern : patterns) {
    if (std::ranges::none_of(
            workloads, [&](const std::string& workload) { return matches(pattern, workload); }))
      throw RequestError("no workload is named '" + pattern + "'",
                         did_you_mean(pattern, names, "a workload is SCENARIO/VARIANT"));
  }
}

std::vector<std::string> workloads_in_common(const Introduction& both,
                                             const std::vector<std::string> Hello::*list,
                                             std::span<const std::string> patterns) {
  std::vector<std::string> workloads;
  const std::vector<std::string>& others = both.head.*list;
  std::ranges::copy_if(
      both.base.*list, std::back_inserter(workloads), [&](const std::string& workload) {
        return std::ranges::find(others, workload) != others.end() && is_wanted(patterns, workload);
      });
  return workloads;
}

}  // namespace stepgate
