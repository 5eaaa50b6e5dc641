// SPDX-License-Identifier: MIT
// Decides which plans depend on cuDNN. The kernels are chosen when the step is prepared
// (kernels/attention/cudnn/choose_cudnn.h). Needs no CUDA.
#pragma once

#include "plan/step_plan.h"

namespace stepgate {

// Returns true if the plan has a launch that cuDNN may run where it is installed.
bool may_use_cudnn(const StepPlan&);

}  // namespace stepgate
