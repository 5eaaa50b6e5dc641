// SPDX-License-Identifier: MIT
// Tests traces of the simulated machine: recording changes no times, and every action of a plan
// leaves the same events as on a GPU.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "device/simulated/simulated_device.h"
#include "plan/compose/build_step_plan.h"
#include "plan/testing/counted.h"
#include "plan/testing/plan_by_hand.h"

namespace stepgate {
namespace {

DeviceProfile h200() {
  const std::filesystem::path source = STEPGATE_SOURCE_DIR;
  return read_profile(source / "baselines/nvidia-h200/device.toml");
}

// Copies on a side stream, waits, allocations, fills and a log every few steps.
Knobs busy_knobs() {
  Knobs knobs;
  knobs.model.layers = 3;
  knobs.model.hidden = 64;
  knobs.transfer = {.host = HostMemory::pinned, .stream = CopyStream::side, .buffers = 2};
  knobs.loader = {.wait_us = 40, .jitter = 0.4, .depth = 2, .workers = 1};
  knobs.sync = {.where = SyncWhere::step, .how = SyncHow::device, .every = 2};
  knobs.alloc = {.with = Allocator::cuda, .when = AllocWhen::step, .keep_bytes = std::nullopt};
  knobs.memory.zero_grad = ZeroGrad::memset;
  knobs.log = {.every = 5, .via = LogVia::late_pinned};
  return knobs;
}

Trace trace_of(const StepPlan& plan, std::int64_t steps, SimulatedSettings settings = {}) {
  const auto device = make_simulated_device(h200(), std::move(settings));
  return device->load(plan)
      ->run({.wash_out_steps = 20, .steps = steps, .trace = true})
      .trace.value();
}

std::int64_t calls_named(const Trace& trace, std::string_view name) {
  return std::count_if(trace.calls.begin(), trace.calls.end(), [&](const HostCall& call) {
    return call.name == name && trace.spans[static_cast<std::size_t>(call.span)].operation >= 0;
  });
}

TEST(SimulatedTrace, ChangesNoTimeOfARun) {
  const std::uint64_t seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  const StepPlan plan = plan_of(busy_knobs());
  const auto plain = make_simulated_device(h200(), {.seed = seed});
  const auto traced = make_simulated_device(h200(), {.seed = seed});
  const auto plain_step = plain->load(plan);
  const auto traced_step = traced->load(plan);
  for (const std::int64_t wash_out : {0, 3, 20}) {
    const StepResult expected = plain_step->run({.wash_out_steps = wash_out, .steps = 30});
    const StepResult got =
        traced_step->run({.wash_out_steps = wash_out, .steps = 30, .trace = true});
    EXPECT_EQ(got.elapsed, expected.elapsed);
    EXPECT_EQ(got.host_busy, expected.host_busy);
    EXPECT_EQ(got.step_times, expected.step_times);
    EXPECT_FALSE(expected.trace);
    ASSERT_TRUE(got.trace);
    EXPECT_EQ(got.trace->first_step, got.first_step + wash_out);
    EXPECT_EQ(got.trace->steps, 30);
  }
}

TEST(SimulatedTrace, PassesTheScoredStepsAloneAndThoseInOrder) {
  const StepPlan plan = plan_of(busy_knobs());
  const auto device = make_simulated_device(h200(), {.seed = 1});
  const Trace trace =
      device->load(plan)->run({.wash_out_steps = 0, .steps = 7, .trace = true}).trace.value();
  std::vector<std::int64_t> steps;
  for (const HostSpan& span : trace.spans) steps.push_back(span.step);
  EXPECT_TRUE(std::is_sorted(steps.begin(), steps.end()));
  EXPECT_EQ(steps.front(), 0);
  EXPECT_EQ(steps.back(), 6);
  for (const HostSpan& span : trace.spans) {
    if (span.operation < 0) continue;
    EXPECT_EQ(span.acts_for,
              span.step + plan.operations[static_cast<std::size_t>(span.operation)].ahead);
  }
}

TEST(SimulatedTrace, NamesTheCallsThatAGpuWouldSee) {
  Knobs knobs = busy_knobs();
  const Trace direct = trace_of(plan_of(knobs), 10);
  EXPECT_EQ(calls_named(direct, "cudaDeviceSynchronize"), 5);
  EXPECT_EQ(calls_named(direct, "cudaMemcpyAsync"), 10 + 2);
  EXPECT_EQ(calls_named(direct, "cudaEventQuery"), 2);
  EXPECT_GT(calls_named(direct, "cudaMalloc"), 0);
  EXPECT_EQ(calls_named(direct, "cudaMalloc"), calls_named(direct, "cudaFree"));
  EXPECT_EQ(calls_named(direct, "cudaMemsetAsync"), 10);
  knobs.alloc.with = Allocator::cuda_async;
  knobs.sync = {.where = SyncWhere::step, .how = SyncHow::memcpy, .every = 1};
  knobs.transfer = {.host = HostMemory::pin_each_step};
  const Trace pooled = trace_of(plan_of(knobs), 10);
  EXPECT_EQ(calls_named(pooled, "cudaMalloc"), 0);
  EXPECT_GT(calls_named(pooled, "cudaMallocAsync"), 0);
  EXPECT_EQ(calls_named(pooled, "cudaMemcpy"), 10);
  EXPECT_EQ(calls_named(pooled, "cudaHostRegister"), 10);
  EXPECT_EQ(calls_named(pooled, "cudaHostUnregister"), 10);
}

TEST(SimulatedTrace, GivesAllWorkOfAGraphToItsLaunch) {
  Knobs knobs;
  knobs.model.layers = 3;
  knobs.model.hidden = 64;
  knobs.memory.zero_grad = ZeroGrad::memset;
  knobs.launch.via = LaunchVia::graph;
  const StepPlan plan = plan_of(knobs);
  const Trace trace = trace_of(plan, 6);
  EXPECT_EQ(calls_named(trace, "cudaGraphLaunch"), 6);
  EXPECT_EQ(calls_named(trace, "cudaMemsetAsync"), 0);
  std::int64_t from_graph = 0;
  for (const DeviceWork& work : trace.work) {
    if (!work.from_graph) continue;
    ++from_graph;
    const auto call = std::find_if(
        trace.calls.begin(), trace.calls.end(),
        [&](const HostCall& candidate) { return candidate.correlation == work.correlation; });
    ASSERT_NE(call, trace.calls.end());
    EXPECT_EQ(call->kind, CallKind::graph_launch);
    EXPECT_EQ(trace.spans[static_cast<std::size_t>(call->span)].step, work.step);
  }
  const auto captured = std::count_if(
      plan.operations.begin(), plan.operations.end(),
      [](const Operation& operation) { return operation.captured && operation.every == 1; });
  EXPECT_EQ(from_graph, 6 * captured);
}

// A step of short kernels, all in one stream.
TEST(SimulatedTrace, ShowsThePauseBeforeAKernelAsIdle) {
  Knobs knobs;
  knobs.model.layers = 3;
  knobs.model.hidden = 64;
  knobs.transfer.host = HostMemory::resident;
  for (const bool graph : {false, true}) {
    knobs.launch.via = graph ? LaunchVia::graph : LaunchVia::stream;
    const ComputeCosts& costs = h200().compute;
    const TraceTime pause(graph ? costs.graph_node_floor_nanoseconds / 2
                                : costs.kernel_floor_nanoseconds);
    const Trace trace = trace_of(plan_of(knobs), 6);
    ASSERT_GT(trace.work.size(), 60U);
    for (std::size_t later = 1; later < trace.work.size(); ++later) {
      if (trace.work[later].kind != WorkKind::kernel) continue;
      EXPECT_GE(trace.work[later].begin - trace.work[later - 1].end, pause * 0.75);
      EXPECT_GT(trace.work[later].end, trace.work[later].begin);
    }
  }
}

TEST(SimulatedTrace, TellsTheRunnersOwnWaitsApart) {
  Knobs knobs;
  knobs.model.kind = ModelKind::spin;
  knobs.model.kernels = 1;
  knobs.model.kernel_us = 200;
  const Trace trace = trace_of(plan_of(knobs), 10);
  EXPECT_EQ(calls_named(trace, "cudaEventSynchronize"), 0);
  const auto own = std::count_if(trace.spans.begin(), trace.spans.end(),
                                 [](const HostSpan& span) { return span.operation == -1; });
  EXPECT_EQ(own, 10);
}

TEST(SimulatedTrace, SaysWhatMemoryTheStepTakesAndWhatComesAndGoes) {
  const StepPlan plan = plan_of(busy_knobs());
  const Trace trace = trace_of(plan, 10);
  const MemoryUse& memory = trace.memory;
  EXPECT_EQ(memory.allocated_bytes[static_cast<std::size_t>(Purpose::weights)], plan.param_bytes);
  EXPECT_EQ(static_cast<double>(memory.peak_allocated_bytes),
            counted(plan, Metric::peak_live).value());
  std::int64_t sum_of_purposes = 0;
  for (const std::int64_t bytes : memory.allocated_bytes) sum_of_purposes += bytes;
  EXPECT_GE(sum_of_purposes, memory.peak_allocated_bytes);
  EXPECT_GT(memory.pinned_bytes, 0);
  std::int64_t balance = 0;
  for (const MemoryChange& change : trace.memory_changes) balance += change.bytes;
  EXPECT_EQ(balance, 0);
  EXPECT_FALSE(trace.memory_changes.empty());
}

// Driver memory after ten steps and twenty wash-out steps. Each step frees all it allocates.
std::int64_t driver_bytes_of(const AllocKnobs& alloc) {
  Knobs knobs;
  knobs.model.hidden = 512;
  knobs.batch.size = 2048;
  knobs.alloc = alloc;
  return trace_of(plan_of(knobs), 10).memory.driver_bytes.value();
}

TEST(SimulatedTrace, SaysWhatADriverWouldReportAsTakenWhenTheStepsAreOver) {
  const AllocKnobs cached{.with = Allocator::caching, .when = AllocWhen::step};
  AllocKnobs emptied = cached;
  emptied.empty_cache_every = 1;
  const AllocKnobs returned{.with = Allocator::cuda, .when = AllocWhen::step};
  AllocKnobs leaking = returned;
  leaking.leak_bytes = 1 << 20;
  const AllocKnobs pooled{.with = Allocator::cuda_async, .when = AllocWhen::step};
  AllocKnobs trimmed = pooled;
  trimmed.keep_bytes = 0;
  const std::int64_t only_kept = driver_bytes_of(returned);
  EXPECT_GT(driver_bytes_of(cached), driver_bytes_of(emptied) + (16 << 20));
  EXPECT_GE(driver_bytes_of(emptied), only_kept);
  EXPECT_EQ(driver_bytes_of(leaking), only_kept + 30 * (1 << 20));
  EXPECT_GT(driver_bytes_of(pooled), only_kept + (16 << 20));
  EXPECT_EQ(driver_bytes_of(trimmed), only_kept);
}

TEST(SimulatedTrace, ShowsAPlantedFaultAsPartOfTheLastOperationOfItsVariantOnly) {
  const StepPlan plan = plan_of(busy_knobs());
  const auto with = [&](const std::string& variant, InjectionKind kind) {
    return trace_of(plan, 10, {.seed = 1, .faults = {{variant, kind}}});
  };
  EXPECT_EQ(calls_named(with("other", InjectionKind::extra_wait), "cudaDeviceSynchronize"), 5);
  EXPECT_EQ(calls_named(with("only", InjectionKind::extra_wait), "cudaDeviceSynchronize"), 15);
  const Trace copied = with("only", InjectionKind::extra_copy);
  const auto pageable =
      std::count_if(copied.work.begin(), copied.work.end(),
                    [](const DeviceWork& work) { return work.from == CopyEnd::pageable; });
  EXPECT_EQ(pageable, 10);
  for (const HostSpan& span : copied.spans) {
    EXPECT_LT(span.operation, static_cast<int>(plan.operations.size()));
  }
}

}  // namespace
}  // namespace stepgate
