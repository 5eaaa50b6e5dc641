// SPDX-License-Identifier: MIT
// Whether a step did what its plan says: where the trace counts what the plan counts, both must
// agree, or no number of the run means what it says.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "measure/trace/traced.h"
#include "plan/planned_step.h"

namespace stepgate {

// The first disagreement, in words, with both numbers and, where the timeline tells, the operation
// in which they part; how many more there are. Counts must be equal up to the rounding of
// fractions, in every round and on every rank, also where the plan has none to compare them with;
// what the library of collectives says for itself must be the plan's; device memory in buffers must
// not exceed the plan's peak (a device that books none has nothing to compare). Nothing when all
// agree.
std::optional<std::string> reason_against_conformance(std::span<const PlannedStep>, const Traced&);

}  // namespace stepgate
