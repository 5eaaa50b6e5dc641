// SPDX-License-Identifier: MIT
// The end of every model's forward pass: a loss, and the records of it.
#pragma once

#include <cstdint>

#include "plan/compose/step_builder.h"

namespace stepgate {

// Buffers.
struct ModelEnds {
  int loss = 0;        // one fp32
  int counter = 0;     // of steps
  int row_losses = 0;  // one fp32 a row
};

// And the plan's telemetry.
ModelEnds add_ends(StepBuilder&, std::int64_t rows);

// The sum of the row losses over so many rows, or over all of them, becomes the step's loss.
void report_loss(StepBuilder&, const ModelEnds&, std::int64_t rows);
void report_loss(StepBuilder&, const ModelEnds&, std::int64_t rows, std::int64_t rows_of_mean);

}  // namespace stepgate
