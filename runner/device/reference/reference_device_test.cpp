// SPDX-License-Identifier: MIT
// A properly ordered plan gives the same bits in every order; a plan that lacks a wait does not.
#include "device/reference/reference_device.h"

#include <gtest/gtest.h>

#include <bit>
#include <random>
#include <set>

#include "device/reference/small_plans.h"

namespace stepgate {
namespace {

constexpr int orders = 200;
constexpr Observe seven_steps{.wash_out_steps = 2, .steps = 5, .tensors = true};

// All numbers of a run, as bits.
std::vector<std::uint32_t> bits_of(const StepResult& result) {
  std::vector<std::uint32_t> bits;
  for (const float loss : result.losses) bits.push_back(std::bit_cast<std::uint32_t>(loss));
  for (const Tensor& tensor : result.tensors) {
    for (const float value : tensor.values) bits.push_back(std::bit_cast<std::uint32_t>(value));
  }
  return bits;
}

StepResult run(const StepPlan& plan, std::uint64_t order_seed, Observe observe = seven_steps) {
  return make_reference_device(order_seed)->load(plan)->run(observe);
}

// The number of different results that the plan has over many orders.
std::size_t outcomes(const StepPlan& plan) {
  const std::uint64_t first_seed = std::random_device{}();
  ::testing::Test::RecordProperty("first order seed", std::to_string(first_seed));
  std::set<std::vector<std::uint32_t>> results;
  for (int order = 0; order < orders; ++order) {
    results.insert(bits_of(run(plan, first_seed + order)));
  }
  return results.size();
}

TrainingPlan double_buffered() {
  return {.copy_stream = small_plan_stream::side,
          .batch_slots = 2,
          .prefetch = 1,
          .events_order_copy = true};
}

TEST(ReferenceDevice, GivesTheSameBitsInEveryOrderThatAnOrderedPlanPermits) {
  EXPECT_EQ(outcomes(training_plan({})), 1u);
  EXPECT_EQ(outcomes(training_plan(double_buffered())), 1u);
}

TEST(ReferenceDevice, ShowsThatTheCopyWasNotWaitedFor) {
  EXPECT_GT(outcomes(without(training_plan(double_buffered()), "wait filled")), 1u);
}

TEST(ReferenceDevice, ShowsThatABatchWasOverwrittenWhileItWasStillRead) {
  EXPECT_GT(outcomes(without(training_plan(double_buffered()), "wait consumed")), 1u);
}

TEST(ReferenceDevice, LearnsTheSameWhicheverWayTheBatchesArrive) {
  const auto expected = bits_of(run(training_plan({}), 1));
  EXPECT_EQ(bits_of(run(training_plan(double_buffered()), 1)), expected);
  TrainingPlan far_ahead = double_buffered();
  far_ahead.batch_slots = 3;
  far_ahead.prefetch = 2;
  EXPECT_EQ(bits_of(run(training_plan(far_ahead), 1)), expected);
  EXPECT_EQ(outcomes(training_plan(far_ahead)), 1u);
}

TEST(ReferenceDevice, LowersTheLossOfALearnableStep) {
  const StepResult result = run(training_plan({}), 1, {.steps = 200});
  double first = 0, last = 0;
  for (int i = 0; i < 5; ++i) {  // one round of the five batches
    first += result.losses[i];
    last += result.losses[195 + i];
  }
  EXPECT_LT(last, first);
}

TEST(ReferenceDevice, OrdersTheLegacyStreamWithComputeButNotTheSideStream) {
  EXPECT_EQ(outcomes(training_plan({.copy_stream = small_plan_stream::legacy})), 1u);
  EXPECT_GT(outcomes(training_plan({.copy_stream = small_plan_stream::side})), 1u);
}

// One stream copies the weights to a buffer, another copies the buffer to the gradients; an event
// orders the two.
TEST(ReferenceDevice, OrdersStreamsBesideTheComputeStreamByEventsOnly) {
  constexpr int side = small_plan_stream::side, third = 3;
  StepPlan plan;
  plan.streams = small_plan_streams();
  plan.streams.push_back({.name = "third", .kind = StreamKind::non_blocking});
  plan.buffers = {{.name = "weights",
                   .purpose = Purpose::weights,
                   .bytes = 64,
                   .content = Content::weights,
                   .scale = 1},
                  {.name = "in between", .bytes = 64},
                  {.name = "gradients", .purpose = Purpose::gradients, .bytes = 64}};
  plan.events = {{"arrived", 1}};
  plan = with_last(plan, CopyBytes{{1, 0, 64}, {0, 0, 64}}, side);
  plan = with_last(plan, RecordEvent{0}, side);
  plan = with_last(plan, StreamWaitsEvent{0}, third);
  plan = with_last(plan, CopyBytes{{2, 0, 64}, {1, 0, 64}}, third);
  EXPECT_EQ(outcomes(plan), 1u);
  plan.operations.erase(plan.operations.begin() + 2);
  EXPECT_GT(outcomes(plan), 1u);
}

// The copy runs on a stream that is not ordered with the others; only the host's waits can order
// it.
TEST(ReferenceDevice, PassesTheHostDuringSynchronousAndPageableCopies) {
  const auto drained = [](TrainingPlan wanted) {
    wanted.copy_stream = small_plan_stream::side;
    return with_last(training_plan(wanted), HostWaits{WaitFor::device});
  };
  EXPECT_EQ(outcomes(drained({.host_waits_for_copy = true})), 1u);
  EXPECT_EQ(outcomes(drained({.host_memory = MemoryKind::pageable})), 1u);
  EXPECT_GT(outcomes(drained({.host_memory = MemoryKind::pinned})), 1u);
  EXPECT_GT(outcomes(drained({.host_memory = MemoryKind::registered})), 1u);
}

TEST(ReferenceDevice, TakesARegisteredBufferForPinned) {
  StepPlan plan =
      training_plan({.copy_stream = small_plan_stream::side, .host_memory = MemoryKind::pageable});
  plan = with_last(plan, HostWaits{WaitFor::device});
  plan.operations.insert(plan.operations.begin(),
                         {.name = "lock", .action = RegisterHost{small_plan_buffer::staging}});
  EXPECT_GT(outcomes(plan), 1u);
}

TEST(ReferenceDevice, PassesTheHostInEveryKindOfWait) {
  const StepPlan plan =
      training_plan({.copy_stream = small_plan_stream::side, .host_waits_for_copy = true});
  EXPECT_GT(outcomes(plan), 1u);  // the next copy overwrites what is still read
  EXPECT_EQ(outcomes(with_last(plan, HostWaits{WaitFor::device})), 1u);
  EXPECT_EQ(outcomes(with_last(plan, HostWaits{WaitFor::stream})), 1u);
  EXPECT_GT(outcomes(with_last(plan, HostWaits{WaitFor::stream}, small_plan_stream::side)), 1u);
  const StepPlan recorded = with_last(plan, RecordEvent{0});
  EXPECT_EQ(outcomes(with_last(recorded, HostWaits{WaitFor::event, 0})), 1u);
  EXPECT_EQ(outcomes(with_last(recorded, HostWaits{WaitFor::poll, 0})), 1u);
  EXPECT_GT(outcomes(with_last(recorded, HostWaits{WaitFor::event, 1})), 1u);  // never recorded
}

TEST(ReferenceDevice, KeepsTheHostWithinTheStepsInFlight) {
  // With at most one step in flight, the copy cannot overwrite a batch that is still read.
  StepPlan plan = without(training_plan(double_buffered()), "wait consumed");
  plan.steps_in_flight = 1;
  EXPECT_EQ(outcomes(plan), 1u);
  plan.steps_in_flight = 2;
  EXPECT_GT(outcomes(plan), 1u);
}

TEST(ReferenceDevice, ReportsEveryLossThoughTheRingIsShort) {
  const auto expected = run(training_plan({}), 1, {.wash_out_steps = 3, .steps = 10}).losses;
  const StepResult result =
      run(training_plan({.capacity = 4}), 1, {.wash_out_steps = 3, .steps = 10});
  EXPECT_EQ(result.losses.size(), 13u);
  EXPECT_EQ(result.losses, expected);
  EXPECT_EQ(result.steps, 10);
  EXPECT_FALSE(result.elapsed.has_value());
}

TEST(ReferenceDevice, GoesOnWhereTheLastRunEnded) {
  const StepPlan plan = training_plan(double_buffered());
  const StepResult whole = run(plan, 5);
  const auto step = make_reference_device(6)->load(plan);
  const StepResult first = step->run({.steps = 3});
  const StepResult second = step->run({.steps = 4, .tensors = true});
  EXPECT_EQ(second.first_step, 3);
  std::vector<float> losses = first.losses;
  losses.insert(losses.end(), second.losses.begin(), second.losses.end());
  EXPECT_EQ(losses, whole.losses);
  ASSERT_EQ(second.tensors.size(), 2u);
  EXPECT_EQ(second.tensors[0].name, "weights");
  EXPECT_EQ(second.tensors[0].values, whole.tensors[0].values);
}

// A plan of one operation that counts how often it acts.
std::uint32_t times_acted(std::int64_t every, int ahead, std::int64_t steps) {
  StepPlan plan;
  plan.buffers = {{.name = "word", .purpose = Purpose::gradients, .bytes = 4}};
  plan.operations = {
      {.name = "count",
       .action = LaunchKernel{.kernel = "spin", .shape = {}, .operands = {{0, 0, 4}}},
       .every = every,
       .ahead = ahead}};
  const StepResult result = run(plan, 1, {.steps = steps, .tensors = true});
  return std::bit_cast<std::uint32_t>(result.tensors.at(0).values.at(0));
}

TEST(ReferenceDevice, ActsForEveryNthStepAndForStepsAhead) {
  EXPECT_EQ(times_acted(1, 0, 7), 7u);
  EXPECT_EQ(times_acted(3, 0, 7), 2u);   // for steps 2 and 5
  EXPECT_EQ(times_acted(1, 2, 7), 9u);   // for steps 0 to 8
  EXPECT_EQ(times_acted(1, -2, 7), 5u);  // for steps 0 to 4
  EXPECT_EQ(times_acted(3, 2, 7), 3u);   // for steps 2, 5 and 8
  EXPECT_EQ(times_acted(3, -2, 7), 1u);  // for step 2
}

// Copies the weights through memory that exists within the step only.
StepPlan detour(AllocatedBy allocator, bool released_too_early) {
  StepPlan plan;
  plan.streams = small_plan_streams();
  plan.buffers = {{.name = "weights",
                   .purpose = Purpose::weights,
                   .bytes = 64,
                   .content = Content::weights,
                   .scale = 1},
                  {.name = "detour", .bytes = 64, .allocated_by = allocator},
                  {.name = "gradients", .purpose = Purpose::gradients, .bytes = 64}};
  const auto copy = [](int to, int from) { return CopyBytes{{to, 0, 64}, {from, 0, 64}}; };
  plan = with_last(plan, Allocate{1});
  plan = with_last(plan, copy(1, 0));
  if (released_too_early) plan = with_last(plan, Release{1});
  plan = with_last(plan, copy(2, 1));
  if (!released_too_early) plan = with_last(plan, Release{1});
  return plan;
}

TEST(ReferenceDevice, ShowsUseAfterRelease) {
  for (const AllocatedBy allocator : {AllocatedBy::cuda, AllocatedBy::cuda_async}) {
    EXPECT_EQ(outcomes(detour(allocator, false)), 1u);
    EXPECT_GT(outcomes(detour(allocator, true)), 1u);
    const StepResult result = run(detour(allocator, false), 1);
    EXPECT_EQ(result.tensors.at(0).values, result.tensors.at(1).values);
  }
}

TEST(ReferenceDevice, ShowsThatAnotherStreamUsesMemoryAfterItsOrderedRelease) {
  StepPlan plan = detour(AllocatedBy::cuda_async, false);
  plan.operations.at(2).stream = small_plan_stream::side;  // not ordered with the release
  EXPECT_GT(outcomes(plan), 1u);
}

TEST(ReferenceDevice, HasUndefinedContentInFreshMemory) {
  StepPlan plan = detour(AllocatedBy::cuda, false);
  plan.operations.erase(plan.operations.begin() + 1);  // the buffer is never written
  EXPECT_GT(outcomes(plan), 1u);
}

}  // namespace
}  // namespace stepgate
