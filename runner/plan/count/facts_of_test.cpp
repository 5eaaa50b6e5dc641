// SPDX-License-Identifier: MIT
#include "plan/count/facts_of.h"

#include <gtest/gtest.h>

#include "plan/analyse/lifetimes.h"
#include "plan/count/step_memory.h"
#include "plan/derive/inject.h"
#include "plan/testing/plan_by_hand.h"

namespace stepgate {
namespace {

// The model has three layers of 16 x 16 and 8 samples. Forward launches 1 kernel for the batch, 2
// per layer, the loss and its report; backward launches 3, 4 and 3; then one update.
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

// The pool gives memory back only at the first wait after a step's memory is free.
TEST(FactsOf, CountsTheWaitsAtWhichAPoolGivesBack) {
  const auto returns = [](const Knobs& knobs) {
    return facts_of(plan_of(knobs)).counts.at(Metric::pool_returns_per_step);
  };
  Knobs knobs = small_mlp();
  knobs.alloc = {.with = Allocator::cuda_async, .when = AllocWhen::step, .keep_bytes = 0};
  EXPECT_EQ(returns(knobs), 0) << "nothing waits";
  knobs.sync = {.where = SyncWhere::step, .how = SyncHow::stream, .every = 1};
  EXPECT_EQ(returns(knobs), 1);
  knobs.log = {.every = 1, .via = LogVia::item};
  EXPECT_EQ(facts_of(plan_of(knobs)).counts.at(Metric::host_waits_per_step), 2);
  EXPECT_EQ(returns(knobs), 1) << "one of two waits comes first";
  knobs.sync.every = 4;
  knobs.log = small_mlp().log;
  EXPECT_EQ(returns(knobs), 0.25);
  knobs.sync = {.where = SyncWhere::step, .how = SyncHow::poll, .every = 1};
  EXPECT_EQ(returns(knobs), 0) << "an answered question is no wait";
  knobs.sync.how = SyncHow::stream;
  knobs.alloc.keep_bytes = std::int64_t{1} << 40;
  EXPECT_EQ(returns(knobs), 0) << "it may keep more than the step ever passes";
  knobs.alloc.keep_bytes = std::nullopt;
  EXPECT_EQ(returns(knobs), 0);
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

TEST(FactsOf, HasWhatOperationsAndPhasesAddUpTo) {
  Knobs knobs = small_mlp();
  knobs.transfer = {.host = HostMemory::pinned, .stream = CopyStream::side, .buffers = 2};
  knobs.log.every = 3;
  const StepPlan plan = plan_of(knobs);
  const PlanFacts facts = facts_of(plan);
  ASSERT_EQ(facts.operations.size(), plan.operations.size());
  for (const TallyRow& row : tally_table) {
    if (row.of_ranks) {
      EXPECT_FALSE(facts.count(row.metric)) << row_of(row.metric).name;
      continue;
    }
    double of_operations = 0;
    for (std::size_t index = 0; index < plan.operations.size(); ++index) {
      of_operations += facts.operations[index].tally[row.metric] /
                       static_cast<double>(plan.operations[index].every);
    }
    double of_phases = 0;
    for (const Tally& phase : facts.phases) of_phases += phase[row.metric];
    const double whole = facts.counts.at(row.metric);
    EXPECT_NEAR(of_operations, whole, 1e-9 * whole) << row_of(row.metric).name;
    EXPECT_NEAR(of_phases, whole, 1e-9 * whole) << row_of(row.metric).name;
  }
  const auto& copied = facts.phases[static_cast<std::size_t>(Phase::h2d)];
  EXPECT_EQ(copied[Metric::copy_bytes_per_step], 8 * 17 * 4);
  EXPECT_EQ(copied[Metric::launches_per_step], 0);
}

TEST(FactsOf, SaysOfTheStepWhatWhoeverMeasuresItMustKnow) {
  const PlanFacts plain = facts_of(plan_of(small_mlp()));
  EXPECT_EQ(plain.prefetch_depth, 0);
  EXPECT_EQ(plain.against_interleaving, "");
  EXPECT_FALSE(plain.uses_managed_memory);
  StepPlan changed = plan_of(small_mlp());
  changed.operations.front().ahead = 2;
  changed.buffers.front().memory = MemoryKind::managed;
  const PlannedStep step = with_facts(changed);
  EXPECT_EQ(step->operations.front().ahead, 2);
  EXPECT_EQ(step.facts().prefetch_depth, 2);
  EXPECT_NE(step.facts().against_interleaving, "");
  EXPECT_TRUE(step.facts().uses_managed_memory);
}

double model_flops(const Knobs& knobs) {
  return facts_of(plan_of(knobs)).model_flops;
}

// The GEMMs are the forward pass, and in the backward pass the gradients of weights and of inputs;
// the first layer has no gradient of its input.
TEST(ModelFlops, OfLayersAreThoseOfTheirGemms) {
  Knobs knobs = small_mlp();
  const double gemm = 2.0 * 8 * 16 * 16;
  EXPECT_EQ(model_flops(knobs), gemm * (3 + 3 + 2));
  knobs.model.kind = ModelKind::spin;
  EXPECT_EQ(model_flops(knobs), 0);
}

// Counts 6 flops for every GEMM parameter and token, and 6 L (T + 1) d for causal attention, of
// which half is masked.
double textbook_flops(const ModelKnobs& model, double samples) {
  const auto number = [](std::int64_t value) { return static_cast<double>(value); };
  const double hidden = number(model.hidden);
  const double parameters =
      12 * number(model.layers) * hidden * hidden + number(model.vocab) * hidden;
  const double attention = 6 * number(model.layers) * number(model.seq + 1) * hidden;
  return (6 * parameters + attention) * samples * number(model.seq);
}

TEST(ModelFlops, OfATransformerAreTheTextbooksHoweverItIsCarriedOut) {
  const Knobs knobs = small_transformer();
  const double expected = textbook_flops(knobs.model, 8);
  const auto expect_the_same = [&](auto set) {
    Knobs other = knobs;
    set(other);
    EXPECT_NEAR(model_flops(other), expected, 1e-9 * expected);
  };
  expect_the_same([](Knobs&) {});
  expect_the_same([](Knobs& other) { other.launch.fuse = Fuse::none; });
  expect_the_same([](Knobs& other) { other.launch.fuse = Fuse::attention; });
  expect_the_same([](Knobs& other) { other.memory.checkpoint_every = 1; });
  expect_the_same([](Knobs& other) {
    other.memory.checkpoint_every = 2;
    other.launch.fuse = Fuse::none;
  });
  expect_the_same([](Knobs& other) { other.batch.accumulate = 2; });
  expect_the_same([](Knobs& other) { other.launch.via = LaunchVia::graph; });
  expect_the_same([](Knobs& other) { other.model.vocab_multiple = 64; });
}

// The result is right however many steps the operations need to repeat, and takes no noticeable
// time.
TEST(FactsOf, CountsReturnsOfAPoolThatAreRare) {
  Knobs knobs = small_mlp();
  knobs.alloc = {.with = Allocator::cuda_async, .when = AllocWhen::op, .keep_bytes = 0};
  knobs.alloc.temps = 20;
  knobs.sync = {.where = SyncWhere::step, .how = SyncHow::stream, .every = 25000};
  const auto returns = [&] { return counted(plan_of(knobs), Metric::pool_returns_per_step); };
  EXPECT_EQ(returns(), 1.0 / 25000);
  knobs.sync.every = 100;
  knobs.log = {.every = 101, .via = LogVia::item};
  EXPECT_DOUBLE_EQ(returns().value(), (101.0 + 100 - 1) / 10100) << "once for both";
  knobs.sync.every = 999983;
  knobs.log.every = 999979;
  EXPECT_EQ(returns(), std::nullopt) << "after 10^12 steps";
}

// Arithmetic on padding does not count as model FLOPs.
TEST(ModelFlops, OfPaddedSamplesAreThoseOfPackedOnes) {
  Knobs packed = small_transformer();
  packed.batch.lengths = {64, 128, 32, 32};
  packed.batch.packed = true;
  double expected = 0;
  for (const std::int64_t length : packed.batch.lengths) {
    ModelKnobs model = packed.model;
    model.seq = length;
    expected += textbook_flops(model, 2);
  }
  EXPECT_NEAR(model_flops(packed), expected, 1e-9 * expected);
  for (const Fuse fuse : {Fuse::attention, Fuse::none}) {
    Knobs padded = packed;
    padded.batch.packed = false;
    padded.launch.fuse = fuse;
    EXPECT_NEAR(model_flops(padded), expected, 1e-9 * expected);
    EXPECT_GT(value(padded, Metric::flops_per_step), 1.5 * value(packed, Metric::flops_per_step));
  }
}

TEST(ModelFlops, AreNoMoreWhereGemmsAreRepeated) {
  StepPlan repeated = plan_of(small_transformer());
  const double once = facts_of(repeated).model_flops;
  inject(repeated, {.kind = InjectionKind::repeated_products, .share = 1});
  const PlanFacts facts = facts_of(repeated);
  EXPECT_GT(facts.counts.at(Metric::flops_per_step), 1.5 * once);
  EXPECT_EQ(facts.model_flops, once);
}

TEST(MeanTokens, AreThoseOfTheBatchesThatTakeTurns) {
  Knobs knobs = small_transformer();
  EXPECT_EQ(mean_tokens(plan_of(knobs)), 8 * 128);
  knobs.batch.sizes = {4, 8};
  EXPECT_EQ(mean_tokens(plan_of(knobs)), 6 * 128);
  EXPECT_EQ(mean_tokens(plan_of(small_mlp())), 0);
}

TEST(PlanFacts, ListWhatHappensEverySoManyStepsWithItsPriceAndItsCounts) {
  Knobs knobs = small_mlp();
  knobs.log = {.every = 7, .via = LogVia::item};
  knobs.loader = {
      .wait_us = 100, .depth = 2, .workers = 2, .restart_every = 400, .start_us = 30'000};
  const PlanFacts facts = facts_of(plan_of(knobs));
  ASSERT_EQ(facts.periodic.size(), 2U);
  EXPECT_EQ(facts.periodic[0].every, 7);
  EXPECT_GT(facts.periodic[0].rough_seconds, 0);
  EXPECT_TRUE(facts.periodic[0].counts.contains(Metric::host_waits_per_step));
  EXPECT_EQ(facts.periodic[1].every, 400);
  EXPECT_NEAR(facts.periodic[1].rough_seconds, 0.0301, 1e-9);
  EXPECT_EQ(facts.periodic[1].counts, std::set{Metric::loader_starts_per_step});
  knobs.loader.depth = 0;  // no workers to start
  EXPECT_EQ(facts_of(plan_of(knobs)).periodic.size(), 1U);
}

TEST(PlanFacts, CountStartsOfTheLoadersWorkersWhereThereAreAny) {
  StepPlan plan;
  plan.batch_sizes = {1};
  plan.loader = {.depth = 2, .workers = 4};
  EXPECT_EQ(facts_of(plan).count(Metric::loader_starts_per_step), 0);
  plan.loader.restart_every = 50;
  EXPECT_EQ(facts_of(plan).count(Metric::loader_starts_per_step), 0.08);
}

}  // namespace
}  // namespace stepgate
