// SPDX-License-Identifier: MIT
// A step's allocator and the step's graph; and caps that a device decides.
#include <gtest/gtest.h>

#include "base/text/units.h"
#include "plan/allocate/run_allocator.h"
#include "plan/allocate/step_allocator.h"
#include "plan/analyse/find_capture_errors.h"
#include "plan/count/step_memory.h"
#include "plan/testing/counted.h"
#include "plan/testing/plan_by_hand.h"
#include "plan/testing/three_streams.h"

namespace stepgate {
namespace {

Knobs captured(Allocator with, AllocWhen when) {
  Knobs knobs = small_mlp();
  knobs.model.hidden = 512;
  knobs.batch.size = 1024;
  knobs.alloc.with = with;
  knobs.alloc.when = when;
  knobs.launch.via = LaunchVia::graph;
  return knobs;
}

Knobs eager(Knobs knobs) {
  knobs.launch.via = LaunchVia::stream;
  return knobs;
}

TEST(CapturedAllocations, AskTheAllocatorForNothingInAStep) {
  for (const Allocator with : {Allocator::caching, Allocator::expandable}) {
    for (const AllocWhen when : {AllocWhen::step, AllocWhen::op}) {
      const Knobs knobs = captured(with, when);
      EXPECT_EQ(value(knobs, Metric::launches_per_step), 1);
      EXPECT_EQ(value(knobs, Metric::device_allocs_per_step), 0);
      EXPECT_EQ(value(knobs, Metric::device_frees_per_step), 0);
      EXPECT_EQ(value(knobs, Metric::host_waits_per_step), 0);
      EXPECT_EQ(value(knobs, Metric::live_slope), 0);
      EXPECT_EQ(value(knobs, Metric::peak_live), value(eager(knobs), Metric::peak_live));
      EXPECT_EQ(held_memory(plan_of(knobs)).most, held_memory(plan_of(eager(knobs))).most);
      EXPECT_GE(value(knobs, Metric::peak_reserved), value(eager(knobs), Metric::peak_reserved));
    }
  }
}

TEST(CapturedAllocations, LieInAPoolThatStaysReservedWhenTheCacheIsEmptied) {
  Knobs knobs = captured(Allocator::caching, AllocWhen::op);
  knobs.alloc.empty_cache_every = 1;
  knobs.alloc.temps = 2;
  const StepPlan plan = plan_of(knobs);
  MemoryHistory history;
  ASSERT_TRUE(std::holds_alternative<CountedAllocations>(run_allocator(plan, 20, &history)));
  std::int64_t in_pool = 0;
  for (const SegmentState& segment : history.segments) {
    if (!segment.capture_pool) continue;
    in_pool += segment.bytes;
    for (const BlockState& block : segment.blocks) EXPECT_EQ(block.use, BlockUse::free);
  }
  const std::int64_t activations =
      held_memory(plan).most[static_cast<std::size_t>(Purpose::activations)];
  EXPECT_GE(in_pool, activations);
  EXPECT_EQ(counted(plan, Metric::device_frees_per_step), 0) << "nothing else is free";
}

TEST(CapturedAllocations, AreWhatTheGraphAllocatesInTheOrderOfTheStep) {
  const StepPlan plan = plan_of(captured(Allocator::caching, AllocWhen::op));
  const auto served = served_by_capture(plan);
  ASSERT_FALSE(served.empty());
  EXPECT_TRUE(std::holds_alternative<Allocate>(served.front()->action));
  EXPECT_TRUE(std::holds_alternative<Release>(served.back()->action));
  EXPECT_TRUE(
      served_by_capture(plan_of(eager(captured(Allocator::caching, AllocWhen::op)))).empty());
  EXPECT_TRUE(served_by_capture(plan_of(captured(Allocator::cuda_async, AllocWhen::op))).empty())
      << "which the driver serves";
}

TEST(CapturedAllocations, CannotStartUnderACapThatTheirPoolDoesNotFitUnder) {
  Knobs knobs = captured(Allocator::caching, AllocWhen::op);
  knobs.alloc.cap = {CapOf::bytes, value(knobs, Metric::peak_reserved) - 2 * mebibyte};
  EXPECT_NE(refusal_of(knobs).find("has no memory to start with: cannot allocate "),
            std::string::npos)
      << refusal_of(knobs);
  EXPECT_NE(refusal_of(knobs).find("for 'the graph: allocate "), std::string::npos);
}

TEST(CapturedAllocations, RefuseWhatAGraphWouldTakeOnceAndAnAllocatorWithoutPools) {
  Knobs knobs = captured(Allocator::caching, AllocWhen::step);
  knobs.alloc.release = false;
  EXPECT_NE(refusal_of(knobs).find("allocates it once and not in every step"), std::string::npos)
      << refusal_of(knobs);
  EXPECT_NE(refusal_of(captured(Allocator::first_fit, AllocWhen::op))
                .find("first_fit keeps no memory apart for a graph"),
            std::string::npos);
}

TEST(CapturedAllocations, AreNotForMemoryThatAnotherStreamUses) {
  StepPlan plan = plan_of(captured(Allocator::caching, AllocWhen::op));
  ASSERT_EQ(find_capture_error(plan), std::nullopt);
  for (Operation& operation : plan.operations) {
    if (operation.name == "loss") operation.stream = side_stream;
  }
  const auto error = find_capture_error(plan);
  ASSERT_TRUE(error);
  EXPECT_NE(error->find("another stream uses '"), std::string::npos) << *error;
}

TEST(DeviceCap, IsTheShareOfTheDevicesMemoryCutToWholeBytes) {
  Knobs knobs = eager(captured(Allocator::caching, AllocWhen::op));
  knobs.alloc.cap = {CapOf::device, 0.6};
  const Scenario scenario = scenario_of(knobs);
  const StepPlan looked_at = build_step_plans(scenario, 1).front();
  EXPECT_EQ(looked_at.allocator->cap_bytes, std::nullopt);
  EXPECT_EQ(looked_at.cap_of_device, 0.6);
  const StepPlan known = build_step_plans(scenario, 1, 1001 * mebibyte + 1).front();
  EXPECT_EQ(known.allocator->cap_bytes, (1001 * mebibyte + 1) * 6 / 10);
  EXPECT_EQ(known.cap_of_device, std::nullopt);
}

TEST(DeviceCap, RefusesAsACapOfSoManyBytesDoes) {
  Knobs knobs = eager(captured(Allocator::caching, AllocWhen::op));
  const auto reserved = static_cast<std::int64_t>(value(knobs, Metric::peak_reserved));
  knobs.alloc.cap = {CapOf::device, 0.5};
  const Scenario scenario = scenario_of(knobs);
  EXPECT_EQ(build_step_plans(scenario, 1, 2 * reserved).front().allocator_simulation->ooms, 0);
  EXPECT_THROW((void)build_step_plans(scenario, 1, 2 * reserved - 4 * mebibyte), RequestError);
}

TEST(DeviceCap, IsNothingThatPlansAloneCanDecide) {
  Knobs knobs = eager(captured(Allocator::caching, AllocWhen::op));
  knobs.alloc.cap = {CapOf::device, 0.6};
  Scenario scenario = scenario_of(knobs);
  scenario.tags = {"no_gpu"};
  try {
    (void)build_step_plans(scenario, 1);
    FAIL() << "accepted";
  } catch (const RequestError& error) {
    EXPECT_NE(std::string(error.what()).find("is decided without a device"), std::string::npos);
  }
}

TEST(PoolCap, LeavesToThePoolWhatIsNotKept) {
  Knobs knobs = eager(captured(Allocator::cuda_async, AllocWhen::step));
  const auto held = held_memory(plan_of(knobs));
  const auto activations = held.most[static_cast<std::size_t>(Purpose::activations)];
  knobs.alloc.cap = {CapOf::bytes, static_cast<double>(held.most_bytes)};
  EXPECT_EQ(plan_of(knobs).pool_cap_bytes, activations) << "just enough";
  knobs.alloc.cap.amount -= 1;
  EXPECT_NE(refusal_of(knobs).find("its buffers and its pool take "), std::string::npos)
      << refusal_of(knobs);
  knobs.alloc.cap = {CapOf::need, 1.5};
  EXPECT_GT(plan_of(knobs).pool_cap_bytes, activations);
}

}  // namespace
}  // namespace stepgate
