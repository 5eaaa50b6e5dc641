// SPDX-License-Identifier: MIT
// Selects the workloads on which two programs are compared.
#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

#include "compare/launches/comparison.h"
#include "scenario/scenario.h"

namespace stepgate {

// Returns whether one of the patterns (*, ?, [a-z]) matches. An empty list matches everything.
bool is_wanted(std::span<const std::string> patterns, const std::string& workload);

// All workloads of the scenarios, "scenario/variant".
std::vector<std::string> workloads_of(std::span<const Scenario>);

// Relative margins of the wanted workloads that a device runs and whose own margin is wider than
// `margin`.
std::map<std::string, double> wider_margins(std::span<const Scenario>,
                                            std::span<const std::string> patterns, double margin);

// Throws RequestError for a pattern that matches no workload: a mistyped pattern must not silently
// shrink a gate.
void refuse_unmatched(std::span<const std::string> patterns,
                      std::span<const std::string> workloads);

// The workloads in `list` of both hellos that match the patterns, in BASE's order.
std::vector<std::string> workloads_in_common(const Introduction&,
                                             const std::vector<std::string> Hello::*list,
                                             std::span<const std::string> patterns);

}  // namespace stepgate
