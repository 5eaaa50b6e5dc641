// SPDX-License-Identifier: MIT
// Decides which plans depend on cuDNN. The kernels are chosen when the step is prepared
// (kernels/attention/cudnn/choose_cudnn.h). Needs no CUDA.
#pragma once

#include <string>
#include <string_view>

#include "plan/step_plan.h"

namespace stepgate {

// Returns true if the plan has a launch that cuDNN may run where it is installed.
bool may_use_cudnn(const StepPlan&);

// Returns true if the plan has a launch that only cuDNN can run.
bool needs_cudnn(const StepPlan&);

// Returns why a GPU refuses such a plan without cuDNN. `unavailable_reason` is what open_cudnn
// said.
std::string refusal_without_cudnn(std::string_view unavailable_reason);

}  // namespace stepgate
