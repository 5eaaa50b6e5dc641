// SPDX-License-Identifier: MIT
// Compares what the steps of one workload consist of, as both builds count them.
#pragma once

#include <string>
#include <vector>

#include "compare/gate/finding.h"
#include "compare/worker/protocol.h"

namespace stepgate {

inline constexpr double exact_enough = 1e-9;  // relative, of counts that are sums of fractions

// The counts of one workload from both builds.
struct CountedPair {
  std::string workload;
  StepCounts base;
  StepCounts head;
};

// Compares exactly, in base units. An increase blocks and a decrease is a note, except for
// arithmetic: less arithmetic is another step and blocks too. Counts that only a trace has are
// marked. A workload whose losses or gradients differ computes something else.
std::vector<Finding> compare_counts(const CountedPair&);

// Names the parts of a traced step that grew, the largest first, until most of the growth is named.
// Empty where none grew.
std::string parts_that_grew(const StepCounts& base, const StepCounts& head);

}  // namespace stepgate
