// SPDX-License-Identifier: MIT
// Tests memory that is allocated when the batch size differs from that of the step before.
#include <gtest/gtest.h>

#include "base/text/units.h"
#include "plan/analyse/access.h"
#include "plan/analyse/find_races.h"
#include "plan/analyse/lifetimes.h"
#include "plan/count/step_memory.h"
#include "plan/testing/counted.h"
#include "plan/testing/plan_by_hand.h"

namespace stepgate {
namespace {

Knobs resized(Allocator with, std::vector<std::int64_t> sizes, bool release = true) {
  Knobs knobs = small_mlp();
  knobs.model.hidden = 512;
  knobs.batch.sizes = std::move(sizes);
  knobs.alloc.with = with;
  knobs.alloc.when = AllocWhen::resize;
  knobs.alloc.release = release;
  return knobs;
}

Knobs every_step(Knobs knobs) {
  knobs.alloc.when = AllocWhen::step;
  return knobs;
}

template <class Wanted>
int count_of(const StepPlan& plan) {
  int count = 0;
  for (const Operation& operation : plan.operations)
    count += std::holds_alternative<Wanted>(operation.action);
  return count;
}

TEST(Resize, AllocatesAndFreesOnlyWhereTheSizeChanges) {
  const Knobs knobs = resized(Allocator::cuda, {512, 512, 512, 96});
  const double each_step = value(every_step(knobs), Metric::device_allocs_per_step);
  EXPECT_EQ(value(knobs, Metric::device_allocs_per_step), each_step * 2 / 4);
  EXPECT_EQ(value(knobs, Metric::device_frees_per_step), each_step * 2 / 4);
  EXPECT_EQ(value(knobs, Metric::live_slope), 0);
  const Knobs always = resized(Allocator::cuda, {512, 96});
  EXPECT_EQ(value(always, Metric::device_allocs_per_step), each_step) << "every step is a change";
}

TEST(Resize, SharesMemoryBetweenTheStepsOfOneSizeAlone) {
  const StepPlan plan = plan_of(resized(Allocator::cuda, {512, 512, 96, 512, 64}));
  for (const Operation& operation : plan.operations) {
    const auto* allocate = std::get_if<Allocate>(&operation.action);
    if (!allocate) continue;
    const bool of_first_run = operation.turn == 1;
    EXPECT_EQ(allocate->steps, of_first_run ? 2 : 1) << operation.name;
  }
  EXPECT_EQ(count_of<Allocate>(plan), count_of<Release>(plan));
  EXPECT_EQ(find_race(plan), std::nullopt);
}

TEST(Resize, NeedsAndPassesWhatTheLargestSizeDoes) {
  for (const Allocator with : {Allocator::cuda, Allocator::cuda_async, Allocator::caching}) {
    const Knobs knobs = resized(with, {512, 512, 96});
    EXPECT_EQ(value(knobs, Metric::need), value(every_step(knobs), Metric::need));
    EXPECT_EQ(value(knobs, Metric::peak_live), value(every_step(knobs), Metric::peak_live));
    EXPECT_EQ(held_memory(plan_of(knobs)).most, held_memory(plan_of(every_step(knobs))).most);
  }
}

TEST(Resize, IsThereAllTheTimeInAStepThatOnlyUsesIt) {
  const StepPlan plan = plan_of(resized(Allocator::cuda, {512, 512, 512, 96}));
  for (const std::int64_t turn : {0, 1, 2}) {
    const StepPlan alone = turn_alone(plan, turn);
    EXPECT_EQ(count_of<Allocate>(alone) + count_of<Release>(alone), 0);
    int spanning = 0;
    for (const Lifetime& lifetime : lifetimes_of(alone).device)
      spanning += lifetime.because == LivenessReason::it_spans_steps;
    EXPECT_EQ(spanning, count_of<Allocate>(plan) / 2);
  }
  EXPECT_EQ(count_of<Allocate>(turn_alone(plan, 3)), count_of<Allocate>(plan) / 2);
}

TEST(Resize, LeaksEverythingThatItForgetsToRelease) {
  for (const Allocator with : {Allocator::cuda, Allocator::cuda_async, Allocator::caching,
                               Allocator::expandable, Allocator::first_fit}) {
    const Knobs forgets = resized(with, {512, 512, 96}, false);
    const StepPlan plan = plan_of(forgets);
    double allocated = 0;
    for (const Operation& operation : plan.operations) {
      const auto* allocate = std::get_if<Allocate>(&operation.action);
      if (allocate)
        allocated +=
            static_cast<double>(plan.buffers[static_cast<std::size_t>(allocate->buffer)].bytes);
    }
    EXPECT_EQ(count_of<Release>(plan), 0);
    EXPECT_GE(value(forgets, Metric::live_slope), allocated / 3 - 1) << "less what doubles round";
    EXPECT_GT(value(forgets, Metric::need), value(resized(with, {512, 512, 96}), Metric::need));
  }
  const Knobs exact = resized(Allocator::cuda, {512, 512, 96}, false);
  EXPECT_GT(value(exact, Metric::live_slope), mebibyte);
  EXPECT_EQ(value(exact, Metric::device_frees_per_step), 0);
}

TEST(Resize, ForgetsInEveryWayToAllocate) {
  for (const AllocWhen when : {AllocWhen::step, AllocWhen::op}) {
    Knobs knobs = resized(Allocator::caching, {}, false);
    knobs.batch.size = 256;
    knobs.alloc.when = when;
    EXPECT_GT(value(knobs, Metric::live_slope), 0);
    knobs.alloc.release = true;
    EXPECT_EQ(value(knobs, Metric::live_slope), 0);
  }
}

TEST(Resize, GivesUpEveryStepOfASizeThatIsRefused) {
  Knobs knobs = resized(Allocator::caching, {96, 8192, 8192});
  knobs.alloc.cap = {CapOf::bytes, 0.8 * value(knobs, Metric::peak_reserved)};
  Scenario scenario = scenario_of(knobs);
  scenario.tags = {"no_gpu"};
  scenario.measure.steps = 60;
  const StepPlan plan = build_step_plans(scenario, 1).front();
  EXPECT_EQ(plan.allocator_simulation->refused_steps, 40);
  EXPECT_EQ(plan.allocator_simulation->ooms, 20) << "one for both steps of the size";
  EXPECT_EQ(plan.allocator_simulation->live_slope_bytes, 0);
}

TEST(Resize, NeedsAStepOfAnotherSizeBeforeTheFirst) {
  EXPECT_NE(refusal_of(resized(Allocator::cuda, {512, 96, 512})).find("begin and end with 512"),
            std::string::npos);
  Knobs largest_first = resized(Allocator::cuda, {96, 512, 96, 512});
  EXPECT_EQ(refusal_of(largest_first), "accepted");
  largest_first.batch.sizes = {512, 512, 96, 512};
  largest_first.batch.largest_first = true;
  EXPECT_NE(refusal_of(largest_first).find("begin and end with 512"), std::string::npos);
  largest_first.batch.sizes = {96, 512, 512};
  EXPECT_EQ(refusal_of(largest_first), "accepted") << "512, 512, 96";
}

}  // namespace
}  // namespace stepgate
