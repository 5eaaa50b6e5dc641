// SPDX-License-Identifier: MIT
// The end of every model's forward pass: a loss, and its records for the host.
#pragma once

#include <cstdint>

#include "plan/compose/step_builder.h"

namespace stepgate {

// Indices of the buffers at the end of a forward pass.
struct ModelEnds {
  int loss = 0;        // one fp32
  int counter = 0;     // number of steps so far
  int row_losses = 0;  // one fp32 per row
};

// Adds the buffers of ModelEnds and the plan's telemetry.
ModelEnds add_ends(StepBuilder&, std::int64_t rows);

// Launches the kernel that sums `rows` row losses and divides by `rows_of_mean`, or by `rows`, to
// get the step's loss.
void report_loss(StepBuilder&, const ModelEnds&, std::int64_t rows);
void report_loss(StepBuilder&, const ModelEnds&, std::int64_t rows, std::int64_t rows_of_mean);

}  // namespace stepgate
