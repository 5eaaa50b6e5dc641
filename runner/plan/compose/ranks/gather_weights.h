// SPDX-License-Identifier: MIT
// Where every rank keeps only its part of the weights: they are gathered unit by unit, some units
// ahead of where they are used, and forgotten after their last use there (ZeRO's stage 3,
// Rajbhandari et al., 2020; FSDP, Zhao et al., 2023).
#pragma once

#include <cstddef>

#include "plan/compose/build_model.h"

namespace stepgate {

// Moves what the operations of forward and backward passes from `first` on do with the weights to
// memory that a unit has for one visit, fills it beforehand, and leaves the weights' buffer as
// large as a rank's part of all units, one behind the other as in updated_pieces. A unit's visit is
// its use in one pass; two visits with no other unit's between them are one.
void gather_weights(StepBuilder&, const Knobs&, const LearnedParts&, std::size_t first);

}  // namespace stepgate
