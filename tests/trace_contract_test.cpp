// SPDX-License-Identifier: MIT
// What every device that records traces promises, whatever it is made of. The devices come from the
// program that this is linked into. A program of its own, since a GPU must know that it will be
// traced before it starts.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <map>
#include <random>

#include "device_contract.h"
#include "measure/time_split.h"
#include "measure/trace_metrics.h"
#include "plan/access.h"
#include "plan/counted_metrics.h"

namespace stepgate {

// For GoogleTest's messages.
void PrintTo(const DeviceCase& device, std::ostream* out) {
  *out << device.name;
}

namespace {

using std::chrono::microseconds;
using std::chrono::nanoseconds;

// Clocks of host and device are brought together to about this.
constexpr nanoseconds clock_skew = microseconds(20);
// A multiple of every period in the ways to run a step.
constexpr std::int64_t traced_steps = 12;
constexpr Observe traced{.wash_out_steps = 5, .steps = traced_steps, .trace = true};

std::string where(const StepPlan& plan, const auto& record) {
  const std::string name =
      record.operation < 0 ? "the runner's own"
                           : plan.operations.at(static_cast<std::size_t>(record.operation)).name;
  return name + " at step " + std::to_string(record.step);
}

const Operation* operation_of(const StepPlan& plan, const auto& record) {
  if (record.operation < 0) return nullptr;
  return &plan.operations.at(static_cast<std::size_t>(record.operation));
}

class TraceContract : public testing::TestWithParam<DeviceCase> {
 protected:
  // False on a device that need not trace.
  bool traces() const {
    const std::string reason = device_->reason_against_tracing();
    if (GetParam().kind == DeviceKind::reference) {
      EXPECT_NE(reason, "");
      return false;
    }
    EXPECT_EQ(reason, "");
    return reason.empty();
  }

  Trace trace_of(const StepPlan& plan) const {
    std::optional<Trace> trace = device_->load(plan)->run(traced).trace;
    EXPECT_TRUE(trace) << "nothing was recorded";
    if (trace) return *std::move(trace);
    Trace empty;
    empty.steps = traced_steps;
    return empty;
  }

  const std::unique_ptr<Device> device_ = GetParam().make();
};

// Everything at once: a prefetch, waits, allocations, fills, a log that is read late.
Knobs busy_knobs() {
  Knobs knobs = model_knobs("fp32_adamw");
  knobs.h2d = {.host = HostMemory::pinned, .stream = CopyStream::side, .buffers = 2};
  knobs.batch.tensors = 2;
  knobs.loader = {.wait_us = 2, .jitter = 0.3, .depth = 2, .workers = 1};
  knobs.sync = {.where = SyncWhere::step, .how = SyncHow::item, .every = 3};
  knobs.alloc = {.with = Allocator::cuda, .when = AllocWhen::step, .keep_bytes = {}};
  knobs.memory.zero_grad = ZeroGrad::memset;
  knobs.log = {.every = 4, .via = LogVia::late_pinned};
  return knobs;
}

std::vector<Knobs> different_steps() {
  Knobs pageable = model_knobs("spin");
  pageable.h2d = {.host = HostMemory::pageable, .stream = CopyStream::legacy, .blocking = true};
  pageable.sync = {.where = SyncWhere::phase, .how = SyncHow::memcpy, .every = 1};
  Knobs graph = model_knobs("bf16_adamw");
  graph.launch.via = LaunchVia::graph;
  graph.memory.zero_grad = ZeroGrad::memset;
  Knobs locking = model_knobs("tf32_sgd");
  locking.h2d = {.host = HostMemory::pin_each_step};
  locking.alloc = {.with = Allocator::cuda_async, .when = AllocWhen::op, .keep_bytes = {}};
  Knobs managed = model_knobs("fp32_sgd");
  managed.h2d = {.host = HostMemory::managed_prefetch, .stream = CopyStream::side, .buffers = 2};
  return {busy_knobs(), pageable, graph, locking, managed, model_knobs("spin")};
}

TEST_P(TraceContract, RecordsTheScoredStepsWhenAskedAndOnlyThen) {
  if (!traces()) return;
  const StepPlan plan = plan_of(busy_knobs());
  const auto step = device_->load(plan);
  EXPECT_FALSE(step->run({.wash_out_steps = 1, .steps = 2}).trace);
  for (const std::int64_t wash_out : {4, 0}) {
    const StepResult result =
        step->run({.wash_out_steps = wash_out, .steps = traced_steps, .trace = true});
    ASSERT_TRUE(result.trace);
    EXPECT_EQ(result.trace->first_step, result.first_step + wash_out);
    EXPECT_EQ(result.trace->steps, traced_steps);
    const std::int64_t end = result.trace->first_step + traced_steps;
    for (const HostSpan& span : result.trace->spans) {
      EXPECT_GE(span.step, result.trace->first_step);
      EXPECT_LT(span.step, end);
    }
    for (const DeviceWork& work : result.trace->work) {
      EXPECT_GE(work.step, result.trace->first_step) << where(plan, work);
      EXPECT_LT(work.step, end) << where(plan, work);
    }
    EXPECT_FALSE(step->run({.steps = 3}).trace);
  }
}

TEST_P(TraceContract, ChangesNoLoss) {
  if (!traces()) return;
  for (const Knobs& knobs : different_steps()) {
    SCOPED_TRACE(describe(knobs));
    const StepPlan plan = plan_of(knobs);
    const std::vector<float> expected = device_->load(plan)->run({5, traced_steps}).losses;
    const std::vector<float> losses = device_->load(plan)->run(traced).losses;
    ASSERT_EQ(losses.size(), expected.size());
    for (std::size_t index = 0; index < losses.size(); ++index) {
      EXPECT_EQ(std::bit_cast<std::uint32_t>(losses[index]),
                std::bit_cast<std::uint32_t>(expected[index]))
          << "step " << index;
    }
  }
}

// Spans one after the other, one for each operation that acts and where it acts; calls within them.
TEST_P(TraceContract, PutsCallsIntoSpansAndSpansInOrder) {
  if (!traces()) return;
  for (const Knobs& knobs : different_steps()) {
    SCOPED_TRACE(describe(knobs));
    const StepPlan plan = plan_of(knobs);
    const Trace trace = trace_of(plan);
    const HostSpan* before = nullptr;
    for (const HostSpan& span : trace.spans) {
      EXPECT_LE(span.begin, span.end) << where(plan, span);
      if (before != nullptr) {
        EXPECT_LE(before->end, span.begin) << where(plan, span);
        EXPECT_LE(before->step, span.step) << where(plan, span);
      }
      before = &span;
      const Operation* operation = operation_of(plan, span);
      if (operation == nullptr) continue;
      EXPECT_EQ(span.acts_for, span.step + operation->ahead) << where(plan, span);
      EXPECT_TRUE(acts_for(*operation, span.acts_for)) << where(plan, span);
    }
    TraceTime last{0};
    for (const HostCall& call : trace.calls) {
      EXPECT_FALSE(call.name.empty());
      EXPECT_LE(last, call.begin) << call.name;
      EXPECT_LE(call.begin, call.end) << call.name;
      last = call.begin;
      if (call.span < 0) continue;
      const HostSpan& span = trace.spans.at(static_cast<std::size_t>(call.span));
      EXPECT_LE(span.begin, call.begin) << call.name << ", " << where(plan, span);
      EXPECT_GE(span.end, call.end) << call.name << ", " << where(plan, span);
    }
    if (HasFailure()) return;
  }
}

// How often each operation acts in the traced steps.
std::map<int, std::int64_t> actions_of(const StepPlan& plan, const Trace& trace) {
  std::map<int, std::int64_t> actions;
  for (std::int64_t step = trace.first_step; step < trace.first_step + trace.steps; ++step) {
    for (std::size_t index = 0; index < plan.operations.size(); ++index) {
      const Operation& operation = plan.operations[index];
      if (acts_for(operation, step + operation.ahead)) ++actions[static_cast<int>(index)];
    }
  }
  return actions;
}

TEST_P(TraceContract, SeesTheWorkOfEveryOperationWithItsKindItsBytesAndItsEnds) {
  if (!traces()) return;
  for (const Knobs& knobs : different_steps()) {
    SCOPED_TRACE(describe(knobs));
    const StepPlan plan = plan_of(knobs);
    const Trace trace = trace_of(plan);
    std::map<int, std::int64_t> copies;
    std::map<int, std::int64_t> kernels;
    std::map<int, std::int64_t> filled_bytes;
    for (const DeviceWork& work : trace.work) {
      const Operation* operation = operation_of(plan, work);
      if (operation == nullptr) continue;
      EXPECT_EQ(work.from_graph, operation->captured) << where(plan, work);
      if (work.kind == WorkKind::kernel) {
        ++kernels[work.operation];
        EXPECT_FALSE(work.name.empty()) << where(plan, work);
        EXPECT_TRUE(std::holds_alternative<LaunchKernel>(operation->action)) << where(plan, work);
      } else if (work.kind == WorkKind::fill) {
        filled_bytes[work.operation] += work.bytes;
        EXPECT_TRUE(std::holds_alternative<FillZero>(operation->action)) << where(plan, work);
      } else {
        ++copies[work.operation];
        const auto& copy = std::get<CopyBytes>(operation->action);
        EXPECT_EQ(work.bytes, copy.to.bytes) << where(plan, work);
        const auto is_device = [&](const BufferUse& use) {
          return plan.buffers[static_cast<std::size_t>(use.buffer)].memory == MemoryKind::device;
        };
        EXPECT_EQ(work.from == CopyEnd::device, is_device(copy.from)) << where(plan, work);
        EXPECT_EQ(work.to == CopyEnd::device, is_device(copy.to)) << where(plan, work);
        EXPECT_EQ(work.from == CopyEnd::pageable || work.to == CopyEnd::pageable,
                  is_pageable(plan, copy))
            << where(plan, work);
      }
    }
    for (const auto& [index, actions] : actions_of(plan, trace)) {
      const Operation& operation = plan.operations[static_cast<std::size_t>(index)];
      SCOPED_TRACE(operation.name);
      if (const auto* fill = std::get_if<FillZero>(&operation.action)) {
        EXPECT_EQ(filled_bytes[index], actions * fill->what.bytes);
      } else if (std::holds_alternative<CopyBytes>(operation.action)) {
        EXPECT_EQ(copies[index], actions);
      } else if (std::holds_alternative<LaunchKernel>(operation.action)) {
        EXPECT_GE(kernels[index], actions);  // a product may be several kernels
      }
    }
    if (HasFailure()) return;
  }
}

TEST_P(TraceContract, KnowsTheCallOfAllWorkAndLetsNoneBeginBeforeIt) {
  if (!traces()) return;
  for (const Knobs& knobs : different_steps()) {
    SCOPED_TRACE(describe(knobs));
    const StepPlan plan = plan_of(knobs);
    const Trace trace = trace_of(plan);
    std::map<std::uint32_t, const HostCall*> calls;
    for (const HostCall& call : trace.calls) {
      if (call.correlation != 0) {
        EXPECT_TRUE(calls.emplace(call.correlation, &call).second) << call.name;
      }
    }
    TraceTime last{0};
    for (const DeviceWork& work : trace.work) {
      EXPECT_LE(work.begin, work.end) << where(plan, work);
      EXPECT_LE(last, work.begin) << where(plan, work);
      last = work.begin;
      if (work.operation < 0) continue;
      const auto call = calls.find(work.correlation);
      ASSERT_NE(call, calls.end()) << where(plan, work);
      EXPECT_LE(call->second->begin, work.begin + clock_skew) << where(plan, work);
      const HostSpan& span = trace.spans.at(static_cast<std::size_t>(call->second->span));
      EXPECT_EQ(span.step, work.step) << where(plan, work);
      if (work.from_graph) {
        EXPECT_EQ(call->second->kind, CallKind::graph_launch) << where(plan, work);
      } else {
        EXPECT_EQ(span.operation, work.operation) << where(plan, work);
      }
    }
    if (HasFailure()) return;
  }
}

// One stream of the plan is one of the device, and what is queued in it runs in turn.
TEST_P(TraceContract, KeepsStreamsApartAndTheirWorkInTurn) {
  if (!traces()) return;
  const StepPlan plan = plan_of(busy_knobs());
  const Trace trace = trace_of(plan);
  std::map<StreamName, int> numbers;
  std::map<int, TraceTime> ends;
  for (const DeviceWork& work : trace.work) {
    const Operation* operation = operation_of(plan, work);
    if (operation == nullptr) continue;
    const auto number = numbers.emplace(operation->stream, work.stream).first;
    EXPECT_EQ(number->second, work.stream) << where(plan, work);
    EXPECT_GE(work.begin + microseconds(1), ends[work.stream]) << where(plan, work);
    ends[work.stream] = work.end;
  }
  ASSERT_EQ(numbers.size(), 2u);
  EXPECT_NE(numbers.at(StreamName::compute), numbers.at(StreamName::side));
}

TEST_P(TraceContract, BooksTheMemoryOfThePlanAndWhatComesAndGoes) {
  if (!traces()) return;
  const StepPlan plan = plan_of(busy_knobs());
  const Trace trace = trace_of(plan);
  const MemoryUse& memory = trace.memory;
  std::int64_t all_purposes = 0;
  for (const std::int64_t bytes : memory.allocated_bytes) all_purposes += bytes;
  EXPECT_GE(memory.allocated_bytes[static_cast<std::size_t>(Purpose::weights)], plan.param_bytes);
  EXPECT_GE(static_cast<double>(memory.peak_allocated_bytes),
            counted(plan, Metric::peak_live).value());
  EXPECT_LE(memory.peak_allocated_bytes, all_purposes);
  EXPECT_GE(memory.peak_reserved_bytes, memory.peak_allocated_bytes);
  EXPECT_GE(static_cast<double>(memory.pinned_bytes), counted(plan, Metric::host_pinned).value());
  std::int64_t balance = 0;
  std::int64_t taken = 0;
  for (const MemoryChange& change : trace.memory_changes) {
    if (change.operation < 0) continue;
    balance += change.bytes;
    if (change.bytes > 0) ++taken;
  }
  EXPECT_EQ(balance, 0);
  EXPECT_EQ(static_cast<double>(taken),
            traced_steps * counted(plan, Metric::device_allocs_per_step).value());
}

TEST_P(TraceContract, CountsWhatThePlanCountsInEveryWayToRunAStep) {
  if (!traces()) return;
  const std::uint64_t seed = std::random_device{}();
  int accepted = 0;
  for (const std::string model : {"spin", "fp32_adamw"}) {
    for (const Knobs& knobs : ways_to_run(model_knobs(model), seed)) {
      const auto plan = accepted_plan(knobs);
      if (!plan) continue;
      ++accepted;
      SCOPED_TRACE("seed " + std::to_string(seed) + ": " + model + ", " + describe(knobs));
      const TracedStep step = summary_of(trace_of(*plan), *plan);
      int compared = 0;
      for (const auto& [metric, value] : step.values) {
        const auto expected = counted(*plan, metric);
        if (!expected) continue;
        ++compared;
        if (hangs_on_the_steps(*plan, metric)) continue;
        EXPECT_NEAR(value, *expected, 1e-9 * *expected) << row_of(metric).name;
      }
      EXPECT_EQ(compared, 11);
      if (HasFailure()) return;
    }
  }
  EXPECT_GT(accepted, 600);
}

// A queue of long kernels leaves no gap; host work after a wait leaves one as long as itself.
TEST_P(TraceContract, ShowsWhatTheDeviceWaitsFor) {
  if (!traces()) return;
  Knobs knobs = model_knobs("spin");
  knobs.model.kernels = 4;
  knobs.model.kernel_us = 100;
  const StepPlan full = plan_of(knobs);
  knobs.host.step_us = 300;
  knobs.sync = {.where = SyncWhere::step, .how = SyncHow::device, .every = 1};
  const StepPlan waiting = plan_of(knobs);
  const TracedStep full_step = summary_of(trace_of(full), full);
  const TracedStep waiting_step = summary_of(trace_of(waiting), waiting);
  EXPECT_LT(full_step.values.at(Metric::gpu_idle), 0.1);
  EXPECT_GT(full_step.time.math, 0.8 * full_step.time.step);
  EXPECT_GT(waiting_step.values.at(Metric::gpu_idle), 0.3);
  EXPECT_GT(waiting_step.time.idle_after_wait, 0.3 * waiting_step.time.step);
  EXPECT_GT(waiting_step.values.at(Metric::host_blocked_us), 300e-6);
  EXPECT_GT(waiting_step.phases[static_cast<std::size_t>(Phase::sync)].host_blocked, 300e-6);
}

INSTANTIATE_TEST_SUITE_P(Every, TraceContract, testing::ValuesIn(device_cases()),
                         [](const auto& device) { return device.param.name; });

}  // namespace
}  // namespace stepgate
