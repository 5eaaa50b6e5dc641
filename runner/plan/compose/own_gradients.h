// SPDX-License-Identifier: MIT
// Gradients whose memory is allocated and released within a step, as in PyTorch where zero_grad()
// sets them to none. Each has its own memory, from the first write of the backward pass until the
// update is over.
#pragma once

#include <set>

#include "plan/step_plan.h"
#include "scenario/scenario.h"

namespace stepgate {

// Whether a step releases the memory of gradients: it allocates operation by operation and does not
// fill gradients with zeros. False where gradients are views of memory that stays: of reduction
// buckets (DistributedDataParallel's gradient_as_bucket_view), or of the one-layer buffer that
// layers share when weights are on the host.
bool gives_gradients_back(const Knobs&);

// Splits the flat buffer of all gradients wherever no operation spans the boundary, so that each
// tensor has its own buffer in each turn of batches. Operations use the new buffers, and tensors
// used by one operation stay together. Returns the indices of the new buffers, the first of which
// replaces the flat buffer. Changes nothing and returns no index where one launch uses all
// gradients, as a fused optimizer does. Such gradients are views of one buffer, which stays
// allocated when zero_grad() drops them.
std::set<int> give_gradients_their_own(StepPlan&);

}  // namespace stepgate
