// SPDX-License-Identifier: MIT
// Digest of a plan: two processes with equal digests run the same steps.
#pragma once

#include <span>
#include <string>

#include "device/ranked/rank_protocol.h"
#include "plan/planned_step.h"

namespace stepgate {

// Digest of all members of a plan and of its parts, except the names of scenario and variant: a
// step compared with itself is one step with two names.
std::string digest_of(const StepPlan&);

std::vector<NamedPlan> named_plans(std::span<const PlannedStep>);

}  // namespace stepgate
