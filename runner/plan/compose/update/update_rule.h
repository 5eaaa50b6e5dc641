// SPDX-License-Identifier: MIT
// The rules of optimizers, for every model: the state that each keeps of a parameter, its kernels
// and its rates. Models decide which parameters are updated together.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "plan/compose/step_builder.h"
#include "scenario/scenario.h"

namespace stepgate {

// The names of the state buffers of the rule, each with one fp32 per parameter.
std::span<const char* const> moments_of(OptimKind);

// Operands of the launch of an update. `control` and `counter` are whole buffers.
struct UpdateOperands {
  StepBuilder::Operand weights;
  StepBuilder::Operand gradients;
  std::optional<StepBuilder::Operand> master;
  std::vector<StepBuilder::Operand> moments;
  std::optional<BufferUse> control;  // kernels/update_control.h
  BufferUse counter;                 // number of steps so far
};

// Launches the moving average of so many weights in storage `dtype`.
void launch_average(StepBuilder&, const std::string& name, std::int64_t elements, double decay,
                    DType, const StepBuilder::Operand& average,
                    const StepBuilder::Operand& weights);

// Launches the update of the parameters of a range of the flat buffer. With a master, a control is
// required.
void launch_update(StepBuilder&, OptimKind, const std::string& name, const RankPiece&,
                   const UpdateOperands&);

}  // namespace stepgate
