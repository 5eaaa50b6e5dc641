// SPDX-License-Identifier: MIT
// A plan as a number: two processes that have the same one carry out the same steps.
#pragma once

#include <span>
#include <string>

#include "device/ranked/rank_protocol.h"
#include "plan/planned_step.h"

namespace stepgate {

// Digest of every member of a plan and of its parts but the names of scenario and variant: a step
// that is compared with itself is the same step twice, by two names.
std::string digest_of(const StepPlan&);

std::vector<NamedPlan> named_plans(std::span<const PlannedStep>);

}  // namespace stepgate
