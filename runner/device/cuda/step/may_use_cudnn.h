// SPDX-License-Identifier: MIT
// Which plans depend on cuDNN. Which kernels they then get is decided where they are prepared,
// kernels/attention/cudnn/choose_cudnn.h. Needs no CUDA.
#pragma once

#include "plan/step_plan.h"

namespace stepgate {

// True when a launch of the plan is one that cuDNN is asked for where it is found.
bool may_use_cudnn(const StepPlan&);

}  // namespace stepgate
