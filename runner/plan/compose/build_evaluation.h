// SPDX-License-Identifier: MIT
// Evaluation of the model between steps: forward passes over memory of their own, which change
// nothing of the training. mlp_layers.h has the arithmetic of a layer.
#pragma once

#include "plan/compose/build_input.h"
#include "plan/compose/step_builder.h"
#include "scenario/scenario.h"

namespace stepgate {

// Appends the evaluation of a step by [eval], on the batch that the step holds: an mlp of these
// weights. Afterwards the batch has been read for good, is said to be consumed once more, and is
// released where the step must do so. Never part of the step's graph.
void build_evaluation(StepBuilder&, const Knobs&, int weights, const InputParts&,
                      std::int64_t sample_bytes);

}  // namespace stepgate
