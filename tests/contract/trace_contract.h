// SPDX-License-Identifier: MIT
// For tests only: the device under the contract of traces, and the steps that are traced on it.
// trace_contract_test.cpp and trace_records_test.cpp test the contract.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tests/contract/device_contract.h"

namespace stepgate {

// The number of steps is a multiple of every period in the variations of a step.
constexpr std::int64_t steps_of_a_trace = 12;
constexpr Observe traced{.wash_out_steps = 5, .steps = steps_of_a_trace, .trace = true};

inline std::string where(const StepPlan& plan, const auto& record) {
  const std::string name =
      record.operation < 0 ? "the runner's own"
                           : plan.operations.at(static_cast<std::size_t>(record.operation)).name;
  return name + " at step " + std::to_string(record.step);
}

// Returns nullptr for work of the runner itself.
inline const Operation* operation_of(const StepPlan& plan, const auto& record) {
  if (record.operation < 0) return nullptr;
  return &plan.operations.at(static_cast<std::size_t>(record.operation));
}

class TraceContract : public testing::TestWithParam<DeviceCase> {
 protected:
  // Returns false on a device that need not trace.
  bool traces() const {
    const std::string reason = device_->reason_against_tracing();
    if (GetParam().kind == DeviceKind::reference) {
      EXPECT_NE(reason, "");
      return false;
    }
    EXPECT_EQ(reason, "");
    return reason.empty();
  }

  Trace trace_of(const StepPlan& plan) const { return trace_of(*device_->load(plan)); }
  Trace trace_of(LoadedStep& step) const {
    std::optional<Trace> trace = step.run(traced).trace;
    EXPECT_TRUE(trace) << "nothing was recorded";
    if (trace) return *std::move(trace);
    Trace empty;
    empty.steps = steps_of_a_trace;
    return empty;
  }

  const std::unique_ptr<Device> device_ = GetParam().make();
};

// Combines a prefetch, waits, allocations, fills, and a log that is read late.
inline Knobs busy_knobs() {
  Knobs knobs = model_knobs("fp32_adamw");
  knobs.transfer = {.host = HostMemory::pinned, .stream = CopyStream::side, .buffers = 2};
  knobs.batch.tensors = 2;
  knobs.loader = {.wait_us = 2, .jitter = 0.3, .depth = 2, .workers = 1};
  knobs.sync = {.where = SyncWhere::step, .how = SyncHow::item, .every = 3};
  knobs.alloc = {.with = Allocator::cuda, .when = AllocWhen::step, .keep_bytes = {}};
  knobs.memory.zero_grad = ZeroGrad::memset;
  knobs.log = {.every = 4, .via = LogVia::late_pinned};
  return knobs;
}

inline std::vector<Knobs> different_steps() {
  Knobs pageable = model_knobs("spin");
  pageable.transfer = {
      .host = HostMemory::pageable, .stream = CopyStream::legacy, .blocking = true};
  pageable.sync = {.where = SyncWhere::phase, .how = SyncHow::memcpy, .every = 1};
  Knobs graph = model_knobs("bf16_adamw");
  graph.launch.via = LaunchVia::graph;
  graph.memory.zero_grad = ZeroGrad::memset;
  Knobs locking = model_knobs("tf32_sgd");
  locking.transfer = {.host = HostMemory::pin_each_step};
  locking.alloc = {.with = Allocator::cuda_async, .when = AllocWhen::op, .keep_bytes = {}};
  Knobs managed = model_knobs("fp32_sgd");
  managed.transfer = {
      .host = HostMemory::managed_prefetch, .stream = CopyStream::side, .buffers = 2};
  return {busy_knobs(), pageable, graph, locking, managed, model_knobs("spin")};
}

}  // namespace stepgate
