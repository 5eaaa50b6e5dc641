// SPDX-License-Identifier: MIT
// The forward and backward passes of a model that is already built, one of each for every part of
// the batch.
#pragma once

#include <cstddef>
#include <vector>

#include "plan/step_plan.h"

namespace stepgate {

// A range of operations; `end` is not included.
struct Pass {
  std::size_t begin = 0;
  std::size_t end = 0;
};

// The passes among the operations from `first` on, which belong to one model.
std::vector<Pass> backward_passes(const StepPlan&, std::size_t first);

// A model without a backward pass has one forward pass, which is all of it.
std::vector<Pass> forward_passes(const StepPlan&, std::size_t first);

}  // namespace stepgate
