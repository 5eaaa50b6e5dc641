// SPDX-License-Identifier: MIT
// Makes one step a step of many ranks: gradients are averaged over the ranks, bucket after bucket,
// on a stream of their own. shard.h says which parts of the update a rank has then.
#pragma once

#include <cstddef>

#include "plan/compose/build_model.h"

namespace stepgate {

// Puts the reductions into the operations from `first` on, which are those of one model: each as
// soon as its gradients are there and those before it are issued, or as 'ranks.overlap' has it; the
// update waits for the last. Nothing for one rank.
void build_reduction(StepBuilder&, const Knobs&, const LearnedParts&, std::size_t first);

}  // namespace stepgate
