// SPDX-License-Identifier: MIT
#include "plan/count/facts_of.h"

#include <gtest/gtest.h>

#include "plan/analyse/lifetimes.h"
#include "plan/count/step_memory.h"
#include "plan/testing/plan_by_hand.h"

namespace stepgate {
namespace {

// Three layers of 16 x 16 and 8 samples: forward 1 for the batch and 2 a layer, the loss and its
// report; backward 3, 4 and 3; one update.
TEST(FactsOf, HasTheCountsThatPlansCanKnowAndNoOther) {
  Knobs copied = small_mlp();
  copied.transfer.host = HostMemory::pinned;
  const PlanFacts facts = facts_of(plan_of(copied));
  EXPECT_EQ(facts.counts.at(Metric::launches_per_step), 1 + 6 + 2 + 10 + 1);
  EXPECT_EQ(facts.counts.at(Metric::copy_bytes_per_step), 8 * 17 * 4);
  EXPECT_EQ(facts.counts.at(Metric::device_allocs_per_step), 0);
  EXPECT_FALSE(facts.counts.contains(Metric::samples_per_s));
  Knobs pooled = small_mlp();
  pooled.alloc = {.with = Allocator::cuda_async, .when = AllocWhen::op, .keep_bytes = {}};
  EXPECT_FALSE(facts_of(plan_of(pooled)).counts.contains(Metric::peak_reserved));
}

TEST(FactsOf, HasTheMemoryOfTheStep) {
  Knobs leaking = small_mlp();
  leaking.alloc = {.with = Allocator::cuda_async, .keep_bytes = {}, .leak_bytes = 512};
  const StepPlan plan = plan_of(leaking);
  const PlanFacts facts = facts_of(plan);
  EXPECT_EQ(facts.memory.lifetimes.device, lifetimes_of(plan).device);
  EXPECT_EQ(static_cast<double>(facts.memory.need_bytes), facts.counts.at(Metric::need));
  EXPECT_EQ(static_cast<double>(facts.memory.arena.bytes), facts.counts.at(Metric::arena_bytes));
  EXPECT_EQ(facts.held.most, held_memory(plan).most);
  EXPECT_EQ(facts.growth_bytes_per_step, 512);
}

}  // namespace
}  // namespace stepgate
