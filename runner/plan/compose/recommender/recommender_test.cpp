// SPDX-License-Identifier: MIT
// Tests the operations of a recommender's step, by how its tables are looked up and updated.
// tests/numbers/recommender_numbers_test.cpp checks its numbers.
#include <gtest/gtest.h>

#include <algorithm>

#include "plan/testing/counted.h"
#include "plan/testing/plan_by_hand.h"

namespace stepgate {
namespace {

constexpr std::int64_t layers = 3, tables = 5, table_rows = 20, columns = 8, samples = 6;
constexpr std::int64_t width = tables * columns;
constexpr std::int64_t of_layers = layers * (width * width + width);
constexpr std::int64_t of_tables = tables * table_rows * columns;

Knobs small_recommender() {
  Knobs knobs;
  knobs.transfer.host = HostMemory::resident;
  knobs.model = {.kind = ModelKind::recommender, .layers = layers, .hidden = columns};
  knobs.model.tables = tables;
  knobs.model.vocab = table_rows;
  knobs.batch.size = samples;
  return knobs;
}

template <class Set>
StepPlan recommender_with(Set set) {
  Knobs knobs = small_recommender();
  set(knobs);
  return plan_of(knobs);
}

StepPlan by_table() {
  return recommender_with([](Knobs& knobs) { knobs.launch.fuse = Fuse::none; });
}

std::int64_t fills(const StepPlan& plan) {
  return std::ranges::count_if(plan.operations, [](const Operation& operation) {
    return std::holds_alternative<FillZero>(operation.action);
  });
}

// Launches of the layers of an mlp of this width, and of the gradient of its features.
constexpr std::int64_t launches_of_layers = layers * 2 + 2 + layers * 3 + (layers - 1);

TEST(Recommender, LooksUpAllTablesByOneKernelAndSumsTheirGradientsByOne) {
  const StepPlan plan = plan_of(small_recommender());
  EXPECT_EQ(launches_of(plan, "token_embedding"), 1);
  EXPECT_EQ(launches_of(plan, "embedding_gradient"), 1);
  EXPECT_EQ(fills(plan), 1);
  // The other launches are ingest and the lookup, and the gradient of the tables and the update.
  EXPECT_EQ(value(plan, Metric::launches_per_step), 2 + launches_of_layers + 2);
}

TEST(Recommender, HasTwoKernelsATableWhereNothingIsFused) {
  const StepPlan plan = by_table();
  EXPECT_EQ(launches_of(plan, "token_embedding"), tables);
  EXPECT_EQ(launches_of(plan, "embedding_gradient"), tables);
  EXPECT_EQ(fills(plan), tables);
  // One more launch puts rows side by side, and one splits their gradient by table.
  EXPECT_EQ(value(plan, Metric::launches_per_step),
            1 + tables + 1 + launches_of_layers + 1 + tables + 1);
  // Without fusing, the step also has buffers of rows by table.
  EXPECT_EQ(value(plan, Metric::memset_bytes_per_step), of_tables * 4);
  EXPECT_EQ(value(plan_of(small_recommender()), Metric::memset_bytes_per_step), of_tables * 4);
  EXPECT_EQ(value(plan, Metric::peak_live) - value(plan_of(small_recommender()), Metric::peak_live),
            2 * samples * width * 4);
}

TEST(Recommender, FusesItsTablesByEitherWordForIt) {
  const StepPlan pointwise =
      recommender_with([](Knobs& knobs) { knobs.launch.fuse = Fuse::pointwise; });
  EXPECT_EQ(value(pointwise, Metric::launches_per_step),
            value(small_recommender(), Metric::launches_per_step));
}

TEST(Recommender, LearnsItsLayersAndItsTables) {
  const StepPlan plan = plan_of(small_recommender());
  EXPECT_EQ(plan.param_bytes, (of_layers + of_tables) * 4);
  for (const Buffer& buffer : plan.buffers) {
    if (buffer.name != "weights" && buffer.name != "gradients") continue;
    EXPECT_EQ(buffer.bytes, plan.param_bytes);
    if (buffer.name == "gradients") continue;
    std::int64_t elements = 0;
    for (const ContentPart& part : buffer.parts) elements += part.elements;
    EXPECT_EQ(elements, of_layers + of_tables);
  }
  const StepPlan narrow = recommender_with([](Knobs& knobs) { knobs.model.dtype = DType::bf16; });
  EXPECT_EQ(narrow.param_bytes, (of_layers + of_tables) * 2);
}

TEST(Recommender, UpdatesAllTensorsAtOnceOneByOneOrInPasses) {
  const auto launches = [](OptimKind kind, OptimImpl impl) {
    const StepPlan plan = recommender_with([=](Knobs& knobs) { knobs.optim = {kind, impl}; });
    return std::ranges::count_if(plan.operations, [](const Operation& operation) {
      return operation.phase == Phase::optimizer;
    });
  };
  for (const OptimKind kind :
       {OptimKind::sgd, OptimKind::adamw, OptimKind::lion, OptimKind::momentum}) {
    EXPECT_EQ(launches(kind, OptimImpl::fused), 1);
    EXPECT_EQ(launches(kind, OptimImpl::per_tensor), 2 * layers + tables);
  }
  EXPECT_EQ(launches(OptimKind::adamw, OptimImpl::foreach),
            2 + 9);  // also the norm, which foreach reads
  EXPECT_EQ(launches(OptimKind::adamw, OptimImpl::operations), 2 + 9 * (2 * layers + tables));
}

TEST(Recommender, CopiesOneIndexATableAndALabelOfEverySample) {
  Knobs knobs = small_recommender();
  knobs.transfer.host = HostMemory::pinned;
  EXPECT_EQ(value(knobs, Metric::copy_bytes_per_step), samples * (tables + 1) * 4);
  EXPECT_EQ(value(knobs, Metric::copies_per_step), 1);
  knobs.batch.tensors = tables + 1;
  EXPECT_EQ(value(knobs, Metric::copy_bytes_per_step), samples * (tables + 1) * 4);
  EXPECT_EQ(value(knobs, Metric::copies_per_step), tables + 1);
}

TEST(Recommender, IsOneLaunchAsAGraphHoweverManyKernelsItHas) {
  for (const Fuse fuse : {Fuse::none, Fuse::attention}) {
    const StepPlan plan = recommender_with([=](Knobs& knobs) {
      knobs.launch.fuse = fuse;
      knobs.launch.via = LaunchVia::graph;
    });
    EXPECT_EQ(value(plan, Metric::launches_per_step), 1);
  }
}

TEST(Recommender, FillsNoTableByItselfWhereAllGradientsAreFilled) {
  const StepPlan plan = recommender_with([](Knobs& knobs) {
    knobs.launch.fuse = Fuse::none;
    knobs.memory.zero_grad = ZeroGrad::memset;
  });
  EXPECT_EQ(fills(plan), 1);
  EXPECT_EQ(value(plan, Metric::memset_bytes_per_step), plan.param_bytes);
}

TEST(Recommender, TakesABatchOfEverySizeInTurns) {
  const StepPlan plan = recommender_with([](Knobs& knobs) {
    knobs.batch.sizes = {4, 7};
    knobs.launch.fuse = Fuse::none;
  });
  EXPECT_EQ(launches_of(plan, "token_embedding"), 2 * tables);
  EXPECT_EQ(value(plan, Metric::launches_per_step), value(by_table(), Metric::launches_per_step));
}

TEST(Recommender, OfLayersThatNoMachinePassesIsRefusedInWords) {
  Knobs knobs = small_recommender();
  knobs.model.layers = 512;
  knobs.model.tables = 1024;
  knobs.model.hidden = 65536;
  const std::string refusal = refusal_of(knobs);
  EXPECT_NE(refusal.find("buffer 'weights' takes"), std::string::npos) << refusal;
  EXPECT_NE(refusal.find("model.tables = 1024"), std::string::npos) << refusal;
}

}  // namespace
}  // namespace stepgate
