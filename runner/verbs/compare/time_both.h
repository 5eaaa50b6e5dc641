// SPDX-License-Identifier: MIT
// Times the workloads of a gate: pairs of launches of both programs, or HEAD against its own
// beginning.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "verbs/compare/gate_request.h"

namespace stepgate {

struct TimedWorks {
  std::optional<ComparisonVerdict> comparison = {};  // absent where nothing was timed to the end
  std::vector<Finding> findings = {};
};

// `both` said hello when they counted, if they did. Workloads that differ come first; the counted
// workloads that turn out to be slower get the times of the parts of their steps. A program that
// breaks is a finding.
TimedWorks time_both(const GateRequest&, const Introduction& both,
                     const std::set<std::string>& differing, std::vector<CountedPair>& counted);

// Looks for what begins after more steps than a pair of launches has. Sets `both` to what HEAD says
// twice.
TimedWorks soak_head(const GateRequest&, std::optional<Introduction>& both);

}  // namespace stepgate
