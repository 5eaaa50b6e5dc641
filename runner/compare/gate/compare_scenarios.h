// SPDX-License-Identifier: MIT
// Compares what BASE and HEAD ask for: their workloads and the texts of their scenarios.
#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

#include "compare/gate/finding.h"
#include "compare/launches/comparison.h"
#include "scenario/scenario.h"

namespace stepgate {

// Finds workloads and scenarios that only one side has. A workload that HEAD has lost is not gated.
std::vector<Finding> compare_workloads(const Introduction&);

// Compares BASE's scenarios with HEAD's, by file name. A removed scenario, and a changed or removed
// assertion, regime, requirement or tag, block; additions are notes. `unread` has files of HEAD
// that this build cannot read, with reasons.
std::vector<Finding> compare_scenarios(std::span<const Scenario> base,
                                       std::span<const Scenario> head,
                                       const std::map<std::string, std::string>& unread);

}  // namespace stepgate
