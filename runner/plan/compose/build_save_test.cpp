// SPDX-License-Identifier: MIT
// Tests the copies, waits and handoffs that [save] adds to a plan, and other knobs that act in some
// steps only.
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "plan/analyse/find_capture_errors.h"
#include "plan/analyse/find_races.h"
#include "plan/derive/plan_of_rank.h"
#include "plan/testing/counted.h"
#include "plan/testing/plan_by_hand.h"

namespace stepgate {
namespace {

Knobs saving(SaveVia via, std::int64_t every = 4) {
  Knobs knobs = small_mlp();
  knobs.optim.kind = OptimKind::adamw;
  knobs.save = {.every = every, .via = via};
  return knobs;
}

double copied_by_saving(const Knobs& knobs) {
  Knobs without = knobs;
  without.save = {};
  return value(knobs, Metric::copies_per_step) - value(without, Metric::copies_per_step);
}

TEST(Saving, CopiesWeightsAndMomentsInEveryNthStep) {
  for (const SaveVia via : {SaveVia::blocking, SaveVia::waited, SaveVia::beside}) {
    EXPECT_EQ(copied_by_saving(saving(via)), 3 / 4.0);
    EXPECT_EQ(copied_by_saving(saving(via, 1)), 3);
  }
  Knobs of_lion = saving(SaveVia::waited);
  of_lion.optim.kind = OptimKind::lion;
  EXPECT_EQ(copied_by_saving(of_lion), 2 / 4.0) << "weights and one moment";
}

TEST(Saving, WaitsForEachCopyForAllOrNotAtAll) {
  // A copy to pageable memory is a wait of its own.
  EXPECT_EQ(value(saving(SaveVia::blocking), Metric::host_waits_per_step), 6 / 4.0);
  EXPECT_EQ(value(saving(SaveVia::blocking), Metric::pageable_copies_per_step), 3 / 4.0);
  EXPECT_EQ(value(saving(SaveVia::waited), Metric::host_waits_per_step), 1 / 4.0);
  EXPECT_EQ(value(saving(SaveVia::beside), Metric::host_waits_per_step), 0);
}

// Drops the waits of updates, without which the next update overwrites what is being copied.
StepPlan without_waits(StepPlan plan) {
  std::erase_if(plan.operations, [](const Operation& operation) {
    return operation.name == "wait until the state is saved";
  });
  return plan;
}

TEST(Saving, BesideTheStepsIsARaceUnlessTheUpdateWaits) {
  for (const LaunchVia launch : {LaunchVia::stream, LaunchVia::graph}) {
    for (const OptimImpl impl : {OptimImpl::fused, OptimImpl::per_tensor}) {
      Knobs knobs = saving(SaveVia::beside);
      knobs.launch.via = launch;
      knobs.optim.impl = impl;
      const StepPlan plan = plan_of(knobs);
      EXPECT_FALSE(find_race(plan));
      EXPECT_FALSE(find_capture_error(plan));
      EXPECT_TRUE(find_race(without_waits(plan)));
    }
  }
}

TEST(Saving, FollowsBatchesOfSeveralSizes) {
  Knobs knobs = saving(SaveVia::beside);
  knobs.batch.sizes = {8, 16};
  const StepPlan plan = plan_of(knobs);
  EXPECT_FALSE(find_race(plan));
  EXPECT_EQ(std::ranges::count(plan.operations, "wait until the state is saved", &Operation::name),
            2)
      << "one for the update of each turn";
}

TEST(PausesOfTheHost, ComeInOneOfSoManySteps) {
  Knobs knobs = small_mlp();
  knobs.host.pause_us = 5;
  knobs.host.pause_every = 7;
  const StepPlan plan = plan_of(knobs);
  const auto pause = std::ranges::find(plan.operations, "pause of the host", &Operation::name);
  ASSERT_NE(pause, plan.operations.end());
  EXPECT_EQ(pause->every, 7);
  EXPECT_EQ(std::get<HostWork>(pause->action).nanoseconds, 5000);
}

TEST(ASlowRank, IsSlowInOneOfSoManySteps) {
  Knobs knobs = small_mlp();
  knobs.ranks = {.count = 2, .slow_us = 5, .slow_rank = 1, .slow_every = 3};
  const StepPlan plan = plan_of(knobs);
  const auto work =
      std::ranges::find(plan.operations, "host work of the slow rank", &Operation::name);
  ASSERT_NE(work, plan.operations.end());
  EXPECT_EQ(work->every, 3);
  EXPECT_EQ(std::get<HostWork>(work->action).rank, 1);
}

TEST(JitterOfTheHost, KeepsItsMeanAndDependsOnTheSeed) {
  const HostWork steady{.nanoseconds = 1000};
  HostWork varied{.nanoseconds = 1000, .variation = 0.5, .seed = 1};
  double sum = 0;
  double squares = 0;
  constexpr int steps = 20'000;
  for (int step = 0; step < steps; ++step) {
    EXPECT_EQ(steady.nanoseconds_of_step(step), 1000);
    const auto time = static_cast<double>(varied.nanoseconds_of_step(step)) / 1000;
    sum += time;
    squares += time * time;
  }
  EXPECT_NEAR(sum / steps, 1, 0.02);
  EXPECT_NEAR(squares / steps - 1, 0.25, 0.05) << "the square of the coefficient of variation";
  const std::int64_t before = varied.nanoseconds_of_step(3);
  EXPECT_EQ(varied.nanoseconds_of_step(3), before);
  varied.seed = 2;
  EXPECT_NE(varied.nanoseconds_of_step(3), before);
}

TEST(JitterOfTheHost, IsDrawnByEachRankForItself) {
  Knobs knobs = small_mlp();
  knobs.ranks.count = 2;
  knobs.host = {.step_us = 100, .jitter = 0.5};
  const StepPlan plan = plan_of(knobs);
  const auto times_of = [&](int rank) {
    const StepPlan own = plan_of_rank(plan, rank);
    const auto work = std::ranges::find(own.operations, "host work", &Operation::name);
    std::vector<std::int64_t> times;
    for (int step = 0; step < 100; ++step)
      times.push_back(std::get<HostWork>(work->action).nanoseconds_of_step(step));
    return times;
  };
  EXPECT_NE(times_of(0), times_of(1));
  EXPECT_EQ(times_of(1), times_of(1));
}

}  // namespace
}  // namespace stepgate
