// SPDX-License-Identifier: MIT
// The optimizer's part of a step whose parameters are a list of tensors: the global norm of the
// gradients, the control that is computed from it, and the update rule over flat buffers. Models
// decide which gradients there are.
#pragma once

#include <optional>
#include <vector>

#include "plan/compose/ranks/shard.h"
#include "plan/compose/step_builder.h"
#include "plan/compose/update/parameter_list.h"
#include "scenario/scenario.h"

namespace stepgate {

// Indices of the buffers of an update.
struct UpdateBuffers {
  int weights = 0;
  int gradients = 0;
  int counter = 0;             // of steps
  std::optional<int> control;  // factor of the gradients (kernels/update_control.h)
  std::optional<int> master;   // fp32 weights
  std::optional<int> average;  // of the weights, in fp32
  int partials = 0;            // of the global norm
  std::vector<int> moments;    // of the rule
  int denominator = 0;         // foreach and operations: passed from pass to pass
  // The parts of the flat buffers that this rank updates; master, average and moments hold only
  // these.
  std::vector<UpdatedPiece> pieces;
  std::vector<UpdatedPiece> summed;  // pieces of the global norm, in the order of their sums
  std::optional<int> square_sum;     // sharded: of the pieces' gradients, then over all ranks
};

// Adds flat buffers of all weights and of their gradients, the buffers of the rule, and the
// workspace of GEMMs, and tells the plan the size of the parameters.
void add_learned_buffers(StepBuilder&, const Knobs&, const ParameterList&, UpdateBuffers&);

// Adds the buffers that the rule needs in addition to weights, gradients and counter.
void add_update_buffers(StepBuilder&, const Knobs&, const ParameterList&, UpdateBuffers&);

// fp16 gradients are multiplied by a scale that the device adapts, so that small ones do not
// vanish.
constexpr bool scales_the_loss(const Knobs& knobs) {
  return knobs.model.dtype == DType::fp16;
}

// The range of the loss scale in the control buffer.
BufferUse loss_scale(const UpdateBuffers&);

void build_update(StepBuilder&, const Knobs&, const ParameterList&, const UpdateBuffers&);

}  // namespace stepgate
