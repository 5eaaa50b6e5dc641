// SPDX-License-Identifier: MIT
// Checks that a step did what its plan says. Where the trace counts what the plan counts, both must
// agree; otherwise no number of the run is valid.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "measure/trace/traced.h"
#include "plan/planned_step.h"

namespace stepgate {

// Returns the first disagreement, in words, with both numbers and, where the timeline shows it, the
// operation in which they differ; then the number of further disagreements. nullopt when all agree.
// Counts must be equal up to rounding, in every round and on every rank; counts that plans do not
// know must be equal on all ranks. Work must have run on the plan's streams. The records of the
// library of collectives must match the plan. Device memory in buffers must not exceed the plan's
// peak, where the device accounts for buffers.
std::optional<std::string> reason_against_conformance(std::span<const PlannedStep>, const Traced&);

}  // namespace stepgate
