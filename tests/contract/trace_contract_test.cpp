// SPDX-License-Identifier: MIT
// Tests the promises of every device that records traces: when it records, what this changes, and
// the resulting numbers. trace_records_test.cpp tests single records. The devices come from the
// program that this is linked into. It is a separate program, since a GPU must be set up for
// tracing before it starts.
#include <gtest/gtest.h>

#include <bit>
#include <random>

#include "measure/trace/trace_metrics.h"
#include "plan/testing/counted.h"
#include "tests/contract/trace_contract.h"

namespace stepgate {
namespace {

TEST_P(TraceContract, RecordsTheScoredStepsWhenAskedAndOnlyThen) {
  if (!traces()) return;
  const StepPlan plan = plan_of(busy_knobs());
  const auto step = device_->load(plan);
  EXPECT_FALSE(step->run({.wash_out_steps = 1, .steps = 2}).trace);
  for (const std::int64_t wash_out : {4, 0}) {
    const StepResult result =
        step->run({.wash_out_steps = wash_out, .steps = steps_of_a_trace, .trace = true});
    ASSERT_TRUE(result.trace);
    EXPECT_EQ(result.trace->first_step, result.first_step + wash_out);
    EXPECT_EQ(result.trace->steps, steps_of_a_trace);
    const std::int64_t end = result.trace->first_step + steps_of_a_trace;
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
    const std::vector<float> expected = device_->load(plan)->run({5, steps_of_a_trace}).losses;
    const std::vector<float> losses = device_->load(plan)->run(traced).losses;
    ASSERT_EQ(losses.size(), expected.size());
    for (std::size_t index = 0; index < losses.size(); ++index) {
      EXPECT_EQ(std::bit_cast<std::uint32_t>(losses[index]),
                std::bit_cast<std::uint32_t>(expected[index]))
          << "step " << index;
    }
  }
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
            steps_of_a_trace * counted(plan, Metric::device_allocs_per_step).value());
}

// Memory that a slot keeps for larger steps is not counted for smaller ones.
TEST_P(TraceContract, BooksTheSameMemoryInASlotThatOthersHaveUsed) {
  if (!traces()) return;
  Knobs large = model_knobs("fp32_adamw");
  large.batch.size *= 16;
  large.transfer = {.host = HostMemory::pinned, .stream = CopyStream::side, .buffers = 3};
  Knobs registered = model_knobs("fp32_adamw");
  registered.transfer.host = HostMemory::registered;
  Knobs in_an_arena = large;
  in_an_arena.alloc.with = Allocator::arena;
  std::vector<StepPlan> plans;
  for (const Knobs& knobs : {large, registered, in_an_arena, model_knobs("fp32_transformer")})
    plans.push_back(plan_of(knobs));
  for (int turn = 0; turn < 2; ++turn) {
    for (const StepPlan& plan : plans) {
      const MemoryUse apart = trace_of(plan).memory;
      const MemoryUse in_slot = trace_of(*device_->load_into(0, plan)).memory;
      EXPECT_EQ(in_slot.allocated_bytes, apart.allocated_bytes);
      EXPECT_EQ(in_slot.peak_allocated_bytes, apart.peak_allocated_bytes);
      EXPECT_EQ(in_slot.peak_reserved_bytes, apart.peak_reserved_bytes);
      EXPECT_EQ(in_slot.pinned_bytes, apart.pinned_bytes);
    }
  }
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
      const PlannedStep planned = with_facts(*plan);
      const TracedStep step = summary_of(trace_of(*plan), planned);
      int compared = 0;
      for (const auto& [metric, value] : step.values) {
        const auto expected = planned.facts().count(metric);
        if (!expected) continue;
        ++compared;
        if (planned.facts().may_differ.contains(metric)) continue;
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
  const TracedStep full_step = summary_of(trace_of(full), with_facts(full));
  const TracedStep waiting_step = summary_of(trace_of(waiting), with_facts(waiting));
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
