// SPDX-License-Identifier: MIT
// Turns one variant of a scenario into the step that it describes.
#pragma once

#include "plan/step_plan.h"
#include "scenario/scenario.h"

namespace stepgate {

// Returns one plan for each variant, in the scenario's order. Throws RequestError that names every
// variant that cannot be a step. Reasons are a race (data is overwritten while it may still be
// read) and a step that cannot be captured. Other reasons are sizes that do not fit, and memory
// that a cap does not allow. A cap that is a share of device memory needs `device_memory_bytes`.
// Without it, the plan has no cap and StepPlan::cap_of_device keeps the share.
std::vector<StepPlan> build_step_plans(const Scenario&, std::uint64_t seed,
                                       std::optional<std::int64_t> device_memory_bytes = {});

}  // namespace stepgate
