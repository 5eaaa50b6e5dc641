// SPDX-License-Identifier: MIT
// Tests the memory that steps need and hold in total, and its metrics.
#include "plan/count/step_memory.h"

#include <gtest/gtest.h>

#include "plan/allocate/pack_arena.h"
#include "plan/analyse/lifetimes.h"
#include "plan/testing/counted.h"
#include "plan/testing/plan_by_hand.h"

namespace stepgate {
namespace {

std::size_t at(Purpose purpose) {
  return static_cast<std::size_t>(purpose);
}

TEST(StepMemory, AddsUpAtEveryOperationWhatLivesThen) {
  const StepPlan plan = plan_of(small_mlp());
  const StepMemory memory = step_memory_of(plan);
  ASSERT_EQ(memory.live.size(), plan.operations.size());
  for (int operation = 0; operation < std::ssize(plan.operations); ++operation) {
    BytesByPurpose expected{};
    for (const Lifetime& live : memory.lifetimes.device) {
      const Buffer& buffer = plan.buffers[static_cast<std::size_t>(live.buffer)];
      if (live.first <= operation && operation <= live.last)
        expected[at(buffer.purpose)] += live.bytes;
    }
    EXPECT_EQ(memory.live[static_cast<std::size_t>(operation)], expected) << operation;
  }
  EXPECT_EQ(memory.need_bytes, most_live_bytes(memory.lifetimes.device));
  EXPECT_EQ(sum_of(memory.live[memory.peak_operation]), memory.need_bytes);
}

TEST(StepMemory, OfAStepWithoutOperationsIsWhatItKeeps) {
  StepPlan plan;
  plan.buffers = {{.name = "weights", .purpose = Purpose::weights, .bytes = 700}};
  const StepMemory memory = step_memory_of(plan);
  EXPECT_EQ(memory.need_bytes, 1024);
  EXPECT_EQ(memory.arena.bytes, 1024);
  EXPECT_EQ(memory.always[at(Purpose::weights)], 1024);
  EXPECT_EQ(held_memory(plan).most_bytes, 700);
}

TEST(StepMemory, PeaksInTheBackwardPassWhereGradientsMeetActivations) {
  Knobs knobs = small_mlp();
  knobs.model.hidden = 256;
  knobs.batch.size = 512;
  const StepPlan plan = plan_of(knobs);
  const StepMemory memory = step_memory_of(plan);
  EXPECT_EQ(plan.operations[memory.peak_operation].phase, Phase::backward);
  EXPECT_EQ(memory.live.front()[at(Purpose::gradients)], 0);
  EXPECT_EQ(memory.live.back()[at(Purpose::activations)], 0);
  EXPECT_GT(memory.live.back()[at(Purpose::gradients)], 0);
}

TEST(StepMemory, NeedsNoMoreThanItsArenaAndTheArenaNoMoreThanAllBuffersApart) {
  for (const std::int64_t layers : {1, 2, 3, 7, 20}) {
    Knobs knobs = small_mlp();
    knobs.model.layers = layers;
    const StepPlan plan = plan_of(knobs);
    std::int64_t apart = 0;
    for (const Buffer& buffer : plan.buffers) apart += in_blocks(buffer.bytes) * buffer.slots;
    EXPECT_LE(value(plan, Metric::need), value(plan, Metric::arena_bytes)) << layers;
    EXPECT_LT(value(plan, Metric::arena_bytes), static_cast<double>(apart)) << layers;
  }
}

TEST(StepMemory, GainsNothingInAGraphWhereEverythingKeepsItsAddress) {
  Knobs knobs = small_mlp();
  const StepPlan stream = plan_of(knobs);
  knobs.launch.via = LaunchVia::graph;
  const StepPlan graph = plan_of(knobs);
  std::int64_t apart = 0;
  for (const Buffer& buffer : graph.buffers) apart += in_blocks(buffer.bytes) * buffer.slots;
  EXPECT_EQ(value(graph, Metric::need), static_cast<double>(apart));
  EXPECT_LT(value(stream, Metric::need), value(graph, Metric::need));
}

TEST(StepMemory, PassesTwoBatchesWhereOneIsAllocatedWhileTheOtherIsRead) {
  Knobs knobs = small_mlp();
  knobs.alloc.with = Allocator::cuda_async;
  knobs.transfer = {.host = HostMemory::pinned,
                    .stream = CopyStream::compute,
                    .device_buffer = DeviceBuffer::per_step};
  const std::int64_t batch = plan_of(knobs).batch_bytes;
  EXPECT_EQ(held_memory(plan_of(knobs)).most[at(Purpose::batch)], batch);
  StepPlan ahead = plan_of(knobs);
  for (Buffer& buffer : ahead.buffers) {
    if (buffer.purpose == Purpose::batch) buffer.slots = 2;
  }
  for (Operation& operation : ahead.operations) {
    if (operation.phase == Phase::h2d) operation.ahead = 1;
  }
  EXPECT_EQ(held_memory(ahead).most[at(Purpose::batch)], 2 * batch);
  EXPECT_EQ(value(ahead, Metric::peak_live) - value(plan_of(knobs), Metric::peak_live),
            static_cast<double>(batch));
}

TEST(StepMemory, SlopesByWhatIsNeverReleased) {
  Knobs knobs = small_mlp();
  EXPECT_EQ(value(plan_of(knobs), Metric::live_slope), 0);
  knobs.alloc = {.with = Allocator::cuda, .when = AllocWhen::op, .keep_bytes = std::nullopt};
  EXPECT_EQ(value(plan_of(knobs), Metric::live_slope), 0);
  knobs.log = {.every = 1, .via = LogVia::keep_on_device};
  EXPECT_EQ(value(plan_of(knobs), Metric::live_slope), 4);
}

}  // namespace
}  // namespace stepgate
