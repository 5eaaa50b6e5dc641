// SPDX-License-Identifier: MIT
// The optimizer's part of a step whose parameters are a list of tensors: the global norm of the
// gradients, what follows from it, and its rule over flat buffers. Models decide which gradients
// there are.
#pragma once

#include <optional>
#include <vector>

#include "plan/compose/ranks/shard.h"
#include "plan/compose/step_builder.h"
#include "plan/compose/update/parameter_list.h"
#include "scenario/scenario.h"

namespace stepgate {

// Buffers.
struct UpdateBuffers {
  int weights = 0;
  int gradients = 0;
  int counter = 0;             // of steps
  std::optional<int> control;  // what the update does with the gradients (kernels/update_control.h)
  std::optional<int> master;   // fp32 weights
  int partials = 0;            // of the global norm
  std::vector<int> moments;    // of the rule
  int denominator = 0;         // foreach: what its passes hand over
  // The parts of flat buffers that a rank updates; master and moments have nothing else.
  std::vector<UpdatedPiece> pieces;
  std::optional<int> square_sum;  // sharded: of the pieces' gradients, then of all
};

// Adds the buffers that the rule needs besides weights, gradients and counter.
void add_update_buffers(StepBuilder&, const Knobs&, const ParameterList&, UpdateBuffers&);

// fp16 gradients are multiplied by a scale that the device adapts, so that small ones do not
// vanish.
constexpr bool scales_the_loss(const Knobs& knobs) {
  return knobs.model.dtype == DType::fp16;
}

// Where the loss scale lies.
BufferUse loss_scale(const UpdateBuffers&);

void build_update(StepBuilder&, const Knobs&, const ParameterList&, const UpdateBuffers&);

}  // namespace stepgate
