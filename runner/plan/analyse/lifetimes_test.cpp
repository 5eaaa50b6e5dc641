// SPDX-License-Identifier: MIT
// How long buffers live, on steps of a few operations written down here and on planned ones.
#include "plan/analyse/lifetimes.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include "plan/analyse/stays.h"
#include "plan/testing/plan_by_hand.h"
#include "plan/testing/steps_by_hand.h"

namespace stepgate {

namespace {

TEST(Lifetimes, LastFromTheFirstToTheLastUse) {
  Step step;
  const int a = step.buffer("a");
  const int b = step.buffer("b");
  step.write(a).write(b).read(a).read(b).write(b);
  EXPECT_EQ(only(step, a), in_blocks_of(a, 0, 2, LivenessReason::it_is_used));
  EXPECT_EQ(only(step, b), in_blocks_of(b, 1, 4, LivenessReason::it_is_used));
}

TEST(Lifetimes, AreOneOperationLongForWhatIsWrittenAndNeverRead) {
  Step step;
  const int a = step.buffer("a");
  step.write(a).act(HostWork{1});
  EXPECT_EQ(only(step, a), in_blocks_of(a, 0, 0, LivenessReason::it_is_used));
}

TEST(Lifetimes, AreWholeStepsForWeightsStateBatchesAndBookkeeping) {
  for (const Purpose purpose :
       {Purpose::weights, Purpose::optimizer_state, Purpose::batch, Purpose::bookkeeping}) {
    Step step;
    const int a = step.buffer("a", purpose, 3 * block, 2);
    step.act(HostWork{1}).write(a).read(a).act(HostWork{1});
    EXPECT_EQ(only(step, a), (Lifetime{a, 2, 6 * block, 0, 3, LivenessReason::it_is_kept}));
  }
}

TEST(Lifetimes, CountBytesInWholeBlocks) {
  Step step;
  const int a = step.buffer("a", Purpose::weights, block + 1, 3);
  step.act(HostWork{1});
  EXPECT_EQ(only(step, a).bytes, 3 * 2 * block);
}

TEST(Lifetimes, AreWholeStepsForWhatIsReadBeforeItIsWritten) {
  Step step;
  const int a = step.buffer("a", Purpose::gradients);
  step.read(a).write(a);
  EXPECT_EQ(only(step, a), in_blocks_of(a, 0, 1, LivenessReason::it_is_carried_over));
}

TEST(Lifetimes, AreWholeStepsWhenOneByteOfARangeIsNotWrittenBefore) {
  Step step;
  const int a = step.buffer("a");
  step.write(a, 0, 100).write(a, 101, block - 101).read(a);
  EXPECT_EQ(only(step, a).because, LivenessReason::it_is_carried_over);
  Step whole;
  const int b = whole.buffer("b");
  whole.write(b, 100, block - 100).write(b, 0, 100).read(b);
  EXPECT_EQ(only(whole, b), in_blocks_of(b, 0, 2, LivenessReason::it_is_used));
}

TEST(Lifetimes, DoNotTakeARareWriteForOneBeforeEveryRead) {
  const auto reason = [](std::int64_t write_every, std::int64_t read_every) {
    Step step;
    const int a = step.buffer("a");
    step.builder.only_every(write_every);
    step.write(a);
    step.builder.only_every(read_every);
    step.read(a);
    return only(step, a).because;
  };
  EXPECT_EQ(reason(1, 1), LivenessReason::it_is_used);
  EXPECT_EQ(reason(1, 3), LivenessReason::it_is_used);
  EXPECT_EQ(reason(3, 3), LivenessReason::it_is_used);
  EXPECT_EQ(reason(3, 6), LivenessReason::it_is_used);
  EXPECT_EQ(reason(3, 1), LivenessReason::it_is_carried_over);
  EXPECT_EQ(reason(2, 3), LivenessReason::it_is_carried_over);
}

TEST(Lifetimes, AreWholeStepsWhenUsesActForDifferentSteps) {
  Step step;
  const int a = step.buffer("a", Purpose::staging, block, 2);
  step.builder.look_ahead(1);
  step.write(a);
  step.builder.look_ahead(0);
  step.read(a);
  EXPECT_EQ(only(step, a), (Lifetime{a, 2, 2 * block, 0, 1, LivenessReason::it_spans_steps}));
}

TEST(Lifetimes, GoThroughTheWholeGraphThatUsesThem) {
  Step step;
  const int a = step.buffer("a");
  const int b = step.buffer("b");
  step.write(b).write(b).captured().write(a).captured().write(b).captured().read(b);
  EXPECT_EQ(only(step, a), in_blocks_of(a, 1, 3, LivenessReason::the_graph_uses_it));
  EXPECT_EQ(only(step, b), in_blocks_of(b, 0, 4, LivenessReason::the_graph_uses_it));
}

TEST(Lifetimes, OfWorkspaceLastFromTheFirstGemmToTheLast) {
  const StepPlan plan = plan_of(small_mlp());
  const auto workspace =
      std::find_if(plan.buffers.begin(), plan.buffers.end(),
                   [](const Buffer& buffer) { return buffer.purpose == Purpose::workspace; });
  ASSERT_NE(workspace, plan.buffers.end());
  const auto found =
      of_buffer(lifetimes_of(plan).device, static_cast<int>(workspace - plan.buffers.begin()));
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(plan.operations[static_cast<std::size_t>(found[0].first)].name, "layer 0: gemm");
  EXPECT_EQ(plan.operations[static_cast<std::size_t>(found[0].last)].name,
            "layer 0: weight gradient");
}

TEST(Lifetimes, AreWholeStepsForWhatNobodyNames) {
  Step step;
  const int a = step.buffer("a");
  step.act(HostWork{1});
  EXPECT_EQ(only(step, a).because, LivenessReason::nobody_names_it);
}

int allocated(Step& step, std::int64_t slots = 1) {
  return step.builder.add({.name = "allocated",
                           .bytes = block,
                           .slots = slots,
                           .allocated_by = AllocatedBy::cuda_async});
}

TEST(Lifetimes, OfAllocatedBuffersLastFromTheAllocationToTheRelease) {
  Step step;
  const int a = allocated(step);
  step.act(HostWork{1}).act(Allocate{a}).write(a).act(Release{a}).act(HostWork{1});
  EXPECT_EQ(only(step, a), in_blocks_of(a, 1, 3, LivenessReason::it_is_allocated));
}

TEST(Lifetimes, KnowThatABatchAllocatedAStepAheadIsThereTwiceForAWhile) {
  Step step;
  const int a = allocated(step, 2);
  step.builder.look_ahead(1);
  step.act(Allocate{a}).write(a);
  step.builder.look_ahead(0);
  step.read(a).act(Release{a}).act(HostWork{1});
  EXPECT_EQ(of_buffer(lifetimes_of(step.plan).device, a),
            (std::vector{Lifetime{a, 1, block, 0, 4, LivenessReason::it_spans_steps},
                         in_blocks_of(a, 0, 3, LivenessReason::it_is_allocated)}));
}

TEST(Lifetimes, AreWholeStepsForWhatTheNextStepReleases) {
  Step step;
  const int a = allocated(step);
  step.act(Release{a}).act(Allocate{a}).write(a);
  EXPECT_EQ(only(step, a), in_blocks_of(a, 0, 2, LivenessReason::it_spans_steps));
}

TEST(Lifetimes, OfWhatIsNeverReleasedGrowByOneAStep) {
  Step step;
  const int a = allocated(step, 1000);
  step.act(HostWork{1});
  step.builder.only_every(4);
  step.act(Allocate{a}).write(a);
  EXPECT_EQ(only(step, a), in_blocks_of(a, 1, 2, LivenessReason::it_is_never_released));
  EXPECT_EQ(growth_bytes_per_step(step.plan), block / 4.0);
}

TEST(Lifetimes, OfAPlanThatReleasesWhatItAllocatesDoNotGrow) {
  Knobs knobs = small_mlp();
  knobs.alloc = {.with = Allocator::cuda, .when = AllocWhen::op, .keep_bytes = std::nullopt};
  EXPECT_EQ(growth_bytes_per_step(plan_of(knobs)), 0);
  knobs.log = {.every = 2, .via = LogVia::keep_on_device};
  EXPECT_EQ(growth_bytes_per_step(plan_of(knobs)), 4.0 / 2);
}

// Sums of thirds and sevenths leave more or less than 0, by the order in which they are added.
TEST(Lifetimes, OfTurnsAndEvaluationsThatReleaseEverythingGrowByExactlyZero) {
  for (const Allocator with : {Allocator::cuda, Allocator::cuda_async, Allocator::caching}) {
    Knobs knobs = small_mlp();
    knobs.alloc = {.with = with, .when = AllocWhen::op, .keep_bytes = std::nullopt};
    knobs.model.hidden = 256;
    knobs.batch.sizes = {64, 96, 160};
    EXPECT_EQ(value(knobs, Metric::live_slope), 0);
    EXPECT_EQ(growth_bytes_per_step(plan_of(knobs)), 0);
    knobs.batch.sizes.clear();
    knobs.eval = {.every = 7, .batches = 3};
    EXPECT_EQ(value(knobs, Metric::live_slope), 0);
    EXPECT_EQ(growth_bytes_per_step(plan_of(knobs)), 0);
  }
}

TEST(Lifetimes, LastUntilTheLastOperationThatKeepsTheBuffer) {
  Step step;
  const int kept = step.buffer("kept");
  const int other = step.buffer("other");
  step.write(kept).write(other).write(other).write(other);
  EXPECT_EQ(only(step, kept), in_blocks_of(kept, 0, 0, LivenessReason::it_is_used));
  step.plan.operations[2].keeps = {step.builder.whole(kept)};
  EXPECT_EQ(only(step, kept), in_blocks_of(kept, 0, 2, LivenessReason::it_is_used));
}

TEST(Lifetimes, OfPinnedMemoryAreWholeStepsUnlessTheStepLocksItItself) {
  Knobs knobs = small_mlp();
  const auto pinned_with = [&](HostMemory host) {
    knobs.transfer.host = host;
    return lifetimes_of(plan_of(knobs)).pinned;
  };
  EXPECT_TRUE(pinned_with(HostMemory::resident).empty());
  EXPECT_TRUE(pinned_with(HostMemory::pageable).empty());
  const auto pinned = pinned_with(HostMemory::pinned);
  ASSERT_EQ(pinned.size(), 1U);
  EXPECT_EQ(pinned[0].because, LivenessReason::it_is_kept);
  EXPECT_EQ(pinned[0].bytes, pinned[0].slots * plan_of(knobs).batch_bytes);
  const auto locked = pinned_with(HostMemory::pin_each_step);
  const StepPlan plan = plan_of(knobs);
  ASSERT_EQ(locked.size(), 1U);
  EXPECT_EQ(locked[0].bytes, plan.batch_bytes);
  const auto name = [&](int index) {
    return plan.operations[static_cast<std::size_t>(index)].name;
  };
  EXPECT_EQ(name(locked[0].first), "register the host batch");
  EXPECT_EQ(name(locked[0].last), "unregister the host batch");
}

TEST(Lifetimes, OfGradientsBeginInTheBackwardPassUnlessTheyAccumulateOverSteps) {
  const StepPlan plan = plan_of(small_mlp());
  const auto gradients =
      std::find_if(plan.buffers.begin(), plan.buffers.end(),
                   [](const Buffer& buffer) { return buffer.purpose == Purpose::gradients; });
  const int index = static_cast<int>(gradients - plan.buffers.begin());
  const auto found = of_buffer(lifetimes_of(plan).device, index);
  ASSERT_EQ(found.size(), 1U);
  const auto operation_at = [&](int at) { return plan.operations[static_cast<std::size_t>(at)]; };
  EXPECT_EQ(operation_at(found[0].first).name, "layer 2: bias gradient");
  EXPECT_EQ(operation_at(found[0].last).name, "update all parameters");

  // Without zeroing, the gradients are added to those of the step before.
  Knobs knobs = small_mlp();
  knobs.memory.zero_grad = ZeroGrad::memset;
  StepPlan adding = plan_of(knobs);
  EXPECT_FALSE(of_buffer(lifetimes_of(adding).device, index).front().always());
  std::erase_if(adding.operations, [](const Operation& operation) {
    return std::holds_alternative<FillZero>(operation.action);
  });
  EXPECT_EQ(of_buffer(lifetimes_of(adding).device, index).front().because,
            LivenessReason::it_is_carried_over);
}

// With the most allocations of a plan, each its own buffer, one pass over the operations suffices.
// A pass for each buffer took seconds.
TEST(Stays, OfEveryAllocationAreFoundInOneWalk) {
  constexpr int count = 20'000;
  StepPlan plan;
  plan.buffers.resize(count);
  for (int buffer = 0; buffer < count; ++buffer)
    plan.operations.emplace_back().action = Allocate{.buffer = buffer};
  for (int buffer = count - 1; buffer >= 0; --buffer)
    plan.operations.emplace_back().action = Release{.buffer = buffer};
  const auto begin = std::chrono::steady_clock::now();
  const std::vector<Stays> stays = stays_allocated(plan);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::milliseconds(500));
  ASSERT_EQ(stays.size(), plan.buffers.size());
  EXPECT_EQ(stays.front().pairs, (std::vector{std::pair(0, 2 * count - 1)}));
  EXPECT_EQ(stays.back().pairs, (std::vector{std::pair(count - 1, count)}));
}

}  // namespace
}  // namespace stepgate
