// SPDX-License-Identifier: MIT
// Hand-made plans for the tests of the reference device: one layer, trained on batches that arrive
// in different ways.
#pragma once

#include <string_view>
#include <vector>

#include "plan/step_plan.h"

namespace stepgate {

// The buffers of training_plan, in their order.
namespace small_plan_buffer {
constexpr int staging = 0, batch = 1, weights = 2, gradients = 3;
}

// The streams of small_plan_streams beside the compute stream.
namespace small_plan_stream {
constexpr int side = 1, legacy = 2;
}
std::vector<Stream> small_plan_streams();

struct TrainingPlan {
  int copy_stream = compute_stream;
  MemoryKind host_memory = MemoryKind::pinned;
  bool host_waits_for_copy = false;
  std::int64_t batch_slots = 1;
  int prefetch = 0;                // number of steps that the copy runs ahead
  bool events_order_copy = false;  // events `filled` and `consumed` order copy and use
  std::int64_t capacity = 64;      // of the ring buffer of losses
};

// The operations are named "wait consumed", "copy", "record filled", "wait filled", "ingest",
// "record consumed", "gemm", "loss", "weight gradient", "update" and "report".
StepPlan training_plan(const TrainingPlan&);

// The plan without the operation of that name; aborts if there is none.
StepPlan without(StepPlan, std::string_view operation);

// The plan with one more operation, appended at its end.
StepPlan with_last(StepPlan, Action, int stream = compute_stream);

}  // namespace stepgate
