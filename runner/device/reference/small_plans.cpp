// SPDX-License-Identifier: MIT
// Builds the plans only; the tests state the expected results.
#include "device/reference/small_plans.h"

#include <algorithm>
#include <utility>

#include "base/require.h"
#include "kernels/kernels.h"

namespace stepgate {
namespace {

constexpr std::int64_t samples = 3, features = 4, words = 6;

enum BufferIndex {
  staging,
  batch,
  weights,
  gradients,
  input,
  labels,
  logits,
  row_losses,
  loss,
  history,
  stamps,
  counter,
  cycles
};

std::vector<Buffer> buffers_for(const TrainingPlan& wanted) {
  const std::int64_t batch_bytes = samples * words * 4;
  const std::int64_t matrix_bytes = features * features * 4;
  const std::int64_t ring = wanted.capacity;
  return {
      // The host has more slots than the device, so that each copy brings other numbers.
      {.name = "staging",
       .memory = wanted.host_memory,
       .purpose = Purpose::staging,
       .bytes = batch_bytes,
       .slots = 5,
       .content = Content::payload},
      {.name = "batch",
       .purpose = Purpose::batch,
       .bytes = batch_bytes,
       .slots = wanted.batch_slots},
      {.name = "weights",
       .purpose = Purpose::weights,
       .bytes = matrix_bytes,
       .content = Content::weights,
       .scale = 1},
      {.name = "gradients", .purpose = Purpose::gradients, .bytes = matrix_bytes},
      {.name = "input", .bytes = samples * features * 4},
      {.name = "labels", .bytes = samples * 4},
      {.name = "logits", .bytes = samples * features * 4},
      {.name = "row losses", .bytes = samples * 4},
      {.name = "loss", .purpose = Purpose::bookkeeping, .bytes = 4},
      {.name = "history", .purpose = Purpose::bookkeeping, .bytes = ring * 4},
      {.name = "stamps", .purpose = Purpose::bookkeeping, .bytes = ring * 8},
      {.name = "counter", .purpose = Purpose::bookkeeping, .bytes = 8},
      {.name = "cycles", .purpose = Purpose::bookkeeping, .bytes = ring * 16},
  };
}

class Builder {
 public:
  explicit Builder(const TrainingPlan& wanted) {
    plan_.seed = 11;
    plan_.streams = small_plan_streams();
    plan_.buffers = buffers_for(wanted);
    plan_.events = {{"filled", wanted.batch_slots}, {"consumed", wanted.batch_slots}};
    plan_.telemetry = {history, stamps, wanted.capacity, cycles};
  }

  void add(std::string name, int stream, Action action, int ahead = 0) {
    plan_.operations.push_back(
        {.name = std::move(name), .stream = stream, .action = std::move(action), .ahead = ahead});
  }

  template <class Kernel>
  void launch(std::string name, const typename Kernel::Shape& shape,
              std::initializer_list<int> operands,
              const typename Kernel::Attributes& attributes = {}) {
    LaunchKernel launched;
    launched.kernel = Kernel::name;
    launched.shape = shape;
    launched.attributes = attributes;
    for (const int buffer : operands) launched.operands.push_back(all_of(buffer));
    add(std::move(name), compute_stream, launched);
  }

  BufferUse all_of(int buffer) const {
    return {.buffer = buffer, .bytes = plan_.buffers[buffer].bytes};
  }

  StepPlan plan() && { return std::move(plan_); }

 private:
  StepPlan plan_;
};

constexpr int filled = 0, consumed = 1;

void add_copy(Builder& builder, const TrainingPlan& wanted) {
  const CopyBytes copy{.to = builder.all_of(batch),
                       .from = builder.all_of(staging),
                       .host_waits = wanted.host_waits_for_copy};
  const int stream = wanted.copy_stream;
  if (wanted.events_order_copy) {
    builder.add("wait consumed", stream, StreamWaitsEvent{consumed}, wanted.prefetch);
  }
  builder.add("copy", stream, copy, wanted.prefetch);
  if (!wanted.events_order_copy) return;
  builder.add("record filled", stream, RecordEvent{filled}, wanted.prefetch);
  builder.add("wait filled", compute_stream, StreamWaitsEvent{filled});
}

}  // namespace

std::vector<Stream> small_plan_streams() {
  return {{.name = "compute", .kind = StreamKind::blocking},
          {.name = "side", .kind = StreamKind::non_blocking},
          {.name = "legacy", .kind = StreamKind::legacy_default}};
}

StepPlan training_plan(const TrainingPlan& wanted) {
  Builder builder(wanted);
  add_copy(builder, wanted);
  builder.launch<kernels::Ingest>("ingest", {samples, features, words}, {batch, input, labels});
  if (wanted.events_order_copy) {
    builder.add("record consumed", compute_stream, RecordEvent{consumed});
  }
  builder.launch<kernels::Matmul>("gemm", {samples, features, features}, {input, weights, logits});
  builder.launch<kernels::CrossEntropy>("loss", {samples, features},
                                        {logits, labels, logits, row_losses});
  builder.launch<kernels::Matmul>("weight gradient", {features, features, samples},
                                  {input, logits, gradients}, {.transpose_a = true});
  builder.launch<kernels::Sgd>("update", {features, features}, {weights, gradients},
                               {.learning_rate = 0.5});
  builder.launch<kernels::ReportLoss>("report", {samples},
                                      {row_losses, loss, history, stamps, counter, cycles},
                                      {.capacity = wanted.capacity});
  return std::move(builder).plan();
}

StepPlan without(StepPlan plan, std::string_view operation) {
  const auto erased =
      std::erase_if(plan.operations, [&](const Operation& o) { return o.name == operation; });
  require(erased == 1, "the plan has one operation of that name");
  return plan;
}

StepPlan with_last(StepPlan plan, Action action, int stream) {
  plan.operations.push_back({.name = "last", .stream = stream, .action = std::move(action)});
  return plan;
}

}  // namespace stepgate
