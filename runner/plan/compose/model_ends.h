// SPDX-License-Identifier: MIT
// The end of every model's forward pass: a loss, and the records of it.
#pragma once

#include <cstdint>

#include "plan/compose/step_builder.h"

namespace stepgate {

// Indices of buffers.
struct ModelEnds {
  int loss = 0;        // one fp32
  int counter = 0;     // of steps
  int row_losses = 0;  // one fp32 a row
};

// Adds these buffers and the plan's telemetry.
ModelEnds add_ends(StepBuilder&, std::int64_t rows);

// The sum of `rows` row losses over `rows_of_mean`, or over `rows`, becomes the step's loss.
void report_loss(StepBuilder&, const ModelEnds&, std::int64_t rows);
void report_loss(StepBuilder&, const ModelEnds&, std::int64_t rows, std::int64_t rows_of_mean);

}  // namespace stepgate
