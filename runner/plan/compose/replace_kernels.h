// SPDX-License-Identifier: MIT
// Kernels of a finished step that functions of a user's libraries launch instead.
#pragma once

#include <optional>
#include <string>

#include "plan/step_plan.h"
#include "scenario/scenario.h"

namespace stepgate {

// Lets all launches of these kernels refer to rows with a replacement, and adds the workspace that
// they share. A row has the operands and the host reference of the catalogue's kernel. What the
// catalogue knows of its own code (memory sectors, uncached work, libraries) is not known of it.
void replace_kernels(StepPlan&, const ReplacedKernels&);

// The first of these kernels that the plan does not launch; nullopt if it launches them all.
std::optional<std::string> unused_replacement(const StepPlan&, const ReplacedKernels&);

}  // namespace stepgate
