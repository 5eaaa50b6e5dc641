// SPDX-License-Identifier: MIT
#include "plan/count/facts_of.h"

#include <gtest/gtest.h>

#include "plan/analyse/lifetimes.h"
#include "plan/count/counted_metrics.h"
#include "plan/count/step_memory.h"
#include "plan/testing/plan_by_hand.h"

namespace stepgate {
namespace {

TEST(FactsOf, HasEveryCountThatPlansCanKnowAndNoOther) {
  Knobs served = small_mlp();
  served.alloc = {.with = Allocator::caching, .when = AllocWhen::op, .keep_bytes = {}};
  for (const Knobs& knobs : {small_mlp(), served, small_transformer()}) {
    const StepPlan plan = plan_of(knobs);
    const PlanFacts facts = facts_of(plan);
    for (const MetricRow& row : metric_table()) {
      const auto found = facts.counts.find(row.metric);
      const auto value = found == facts.counts.end() ? std::nullopt : std::optional(found->second);
      EXPECT_EQ(value, counted(plan, row.metric)) << row.name;
    }
    EXPECT_GE(facts.counts.size(), 20U);
  }
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
