// SPDX-License-Identifier: MIT
#include "plan/compose/model_ends.h"

#include "kernels/kernels.h"

namespace stepgate {
namespace {

constexpr std::int64_t steps_kept = 8192;  // losses and stamps; a device reads them in time

}  // namespace

ModelEnds add_ends(StepBuilder& builder, std::int64_t rows) {
  ModelEnds ends{};
  ends.row_losses = builder.add(
      {.name = "row losses", .purpose = Purpose::activations, .bytes = rows * word_bytes});
  ends.loss = builder.add({.name = "loss", .purpose = Purpose::bookkeeping, .bytes = word_bytes});
  ends.counter = builder.add({.name = "step counter", .purpose = Purpose::bookkeeping, .bytes = 8});
  StepTelemetry& kept = builder.plan().telemetry;
  kept.capacity = steps_kept;
  kept.losses = builder.add(
      {.name = "loss history", .purpose = Purpose::bookkeeping, .bytes = steps_kept * word_bytes});
  kept.stamps = builder.add(
      {.name = "step stamps", .purpose = Purpose::bookkeeping, .bytes = steps_kept * 8});
  kept.cycles = builder.add(
      {.name = "step cycles", .purpose = Purpose::bookkeeping, .bytes = steps_kept * 16});
  return ends;
}

void report_loss(StepBuilder& builder, const ModelEnds& ends, std::int64_t rows) {
  report_loss(builder, ends, rows, rows);
}

void report_loss(StepBuilder& builder, const ModelEnds& ends, std::int64_t rows,
                 std::int64_t rows_of_mean) {
  const StepTelemetry& kept = builder.plan().telemetry;
  builder.launch_as<kernels::ReportLoss>(
      DType::fp32, "report the loss", {.rows = rows},
      {builder.whole(ends.row_losses), builder.whole(ends.loss), builder.whole(kept.losses),
       builder.whole(kept.stamps), builder.whole(ends.counter), builder.whole(kept.cycles)},
      {.capacity = kept.capacity, .rows_of_mean = rows_of_mean == rows ? 0 : rows_of_mean});
}

}  // namespace stepgate
