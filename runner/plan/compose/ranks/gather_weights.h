// SPDX-License-Identifier: MIT
// Steps in which every rank keeps only its part of the weights. Weights are gathered unit by unit,
// some units ahead of their use, and dropped after their last use in the pass (ZeRO stage 3,
// Rajbhandari et al., 2020; FSDP, Zhao et al., 2023).
#pragma once

#include <cstddef>

#include "plan/compose/build_model.h"

namespace stepgate {

// Gathers weights unit by unit for the forward and backward passes from operation `first` on. A
// unit has memory for one visit, which is filled beforehand. The buffer of weights keeps only the
// rank's part of all units, in the order of updated_pieces. A visit is the use of a unit in one
// pass; two visits without another unit between them are one.
void gather_weights(StepBuilder&, const Knobs&, const LearnedParts&, std::size_t first);

}  // namespace stepgate
