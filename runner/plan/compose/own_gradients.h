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

// Takes the flat buffer of all gradients apart where no operation reaches over the cut, so that a
// tensor has a buffer of its own in each turn of batches. Moves what operations do with them there.
// Tensors that one operation touches together stay together. Returns the indices of the new
// buffers, which take the flat one's place; nothing changes and there are none where one launch
// touches all, as that of a fused optimizer does: such gradients are views of one buffer, which
// stays when zero_grad() drops them.
std::set<int> give_gradients_their_own(StepPlan&);

}  // namespace stepgate
