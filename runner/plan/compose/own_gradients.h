// SPDX-License-Identifier: MIT
// Gradients whose memory comes and goes, as PyTorch's do where zero_grad() sets them to none: each
// has memory of its own, from where the backward pass first writes it until the update is over.
#pragma once

#include <set>

#include "plan/step_plan.h"
#include "scenario/scenario.h"

namespace stepgate {

// Whether a step gives the memory of gradients back: it allocates operation by operation and fills
// none with zeros. False where gradients are views of memory that stays: of reduction buckets
// (DistributedDataParallel's gradient_as_bucket_view), or of the one-layer buffer that layers share
// when weights are on the host.
bool gives_gradients_back(const Knobs&);

// Splits the flat buffer of all gradients wherever no operation spans the boundary, so that each
// tensor has its own buffer in each turn of batches. Operations use the new buffers, and tensors
// used by one operation stay together. Returns the indices of the new buffers, the first of which
// replaces the flat one. Changes nothing and returns none where one launch uses all gradients, as a
// fused optimizer does. Such gradients are views of one buffer, which stays when zero_grad() drops
// them.
std::set<int> give_gradients_their_own(StepPlan&);

}  // namespace stepgate
