// SPDX-License-Identifier: MIT
// Tests which operations, handoffs of the batch and memory an evaluation adds to a plan.
// evaluation_numbers_test.cpp checks the numbers.
#include <gtest/gtest.h>

#include <algorithm>

#include "base/text/units.h"
#include "plan/analyse/access.h"
#include "plan/analyse/find_races.h"
#include "plan/analyse/lifetimes.h"
#include "plan/count/step_memory.h"
#include "plan/testing/counted.h"
#include "plan/testing/plan_by_hand.h"

namespace stepgate {
namespace {

constexpr double activation_bytes_of_a_block = 8 * 16 * 4;  // of small_mlp

Knobs evaluating(EvalKnobs eval) {
  Knobs knobs = small_mlp();
  knobs.eval = eval;
  return knobs;
}

bool is_of_evaluation(const Operation& operation) {
  return operation.phase == Phase::evaluation;
}

TEST(Evaluation, LaunchesAForwardPassForEveryBatchInEveryNthStep) {
  const double training = value(small_mlp(), Metric::launches_per_step);
  // The evaluation launches ingest, 3 x (GEMM, bias) and loss.
  EXPECT_EQ(value(evaluating({.every = 1}), Metric::launches_per_step), training + 8);
  EXPECT_EQ(value(evaluating({.every = 4, .batches = 3}), Metric::launches_per_step),
            training + 3 * 8 / 4.0);
  for (const Operation& operation : plan_of(evaluating({.every = 4})).operations)
    EXPECT_EQ(operation.every, is_of_evaluation(operation) ? 4 : 1) << operation.name;
}

TEST(Evaluation, DecodesABatchOfBytesIntoMemoryOfItsOwn) {
  Knobs knobs = evaluating({.every = 1, .batches = 3});
  const double of_words = value(knobs, Metric::launches_per_step);
  knobs.batch.format = BatchFormat::uint8;
  const StepPlan plan = plan_of(knobs);
  EXPECT_EQ(value(plan, Metric::launches_per_step), of_words + 1 + 3);
  for (const Operation& operation : plan.operations) {
    const auto* launch = std::get_if<LaunchKernel>(&operation.action);
    if (launch == nullptr || launch->kernel != "decode") continue;
    const std::string& words =
        plan.buffers[static_cast<std::size_t>(launch->operands[1].buffer)].name;
    EXPECT_EQ(words, is_of_evaluation(operation) ? "evaluation decoded batch" : "decoded batch");
  }
}

TEST(Evaluation, CopiesOutputsToPinnedMemoryWhereTheHostStoresThem) {
  const Knobs knobs = evaluating({.every = 2, .batches = 3, .store = EvalStore::host});
  EXPECT_EQ(value(knobs, Metric::copies_per_step), 1.5);
  EXPECT_EQ(value(knobs, Metric::copy_bytes_per_step), 1.5 * activation_bytes_of_a_block);
  EXPECT_EQ(value(knobs, Metric::host_pinned), 3 * activation_bytes_of_a_block);
  EXPECT_EQ(value(knobs, Metric::host_waits_per_step), 0);
  EXPECT_EQ(value(evaluating({.every = 2, .batches = 3}), Metric::host_pinned), 0);
}

TEST(Evaluation, WritesNothingThatTheTrainingReads) {
  const StepPlan plan = plan_of(evaluating({.every = 1, .save_for_backward = true}));
  for (const Operation& operation : plan.operations) {
    if (!is_of_evaluation(operation)) continue;
    for (const BufferAccess& access : accesses_of(plan, operation)) {
      const Buffer& buffer = plan.buffers[static_cast<std::size_t>(access.use.buffer)];
      const bool own = buffer.name.starts_with("evaluation");
      EXPECT_TRUE(own || access.access == Access::read) << operation.name << ", " << buffer.name;
    }
  }
}

TEST(Evaluation, StaysOutOfTheGraph) {
  Knobs knobs = evaluating({.every = 3});
  knobs.launch.via = LaunchVia::graph;
  const StepPlan plan = plan_of(knobs);
  EXPECT_TRUE(std::any_of(plan.operations.begin(), plan.operations.end(),
                          [](const Operation& operation) { return operation.captured; }));
  for (const Operation& operation : plan.operations)
    EXPECT_FALSE(operation.captured && is_of_evaluation(operation)) << operation.name;
  EXPECT_NEAR(value(knobs, Metric::launches_per_step), 1 + 8 / 3.0, 1e-12);
}

TEST(Evaluation, IsARaceUnlessItSaysThatTheBatchIsEvaluated) {
  const TransferKnobs arrivals[] = {
      {.host = HostMemory::pinned, .stream = CopyStream::side, .buffers = 2},
      {.host = HostMemory::managed},
      {.host = HostMemory::managed_prefetch}};
  for (const TransferKnobs& arrival : arrivals) {
    for (const std::int64_t every : {1, 2, 5}) {
      Knobs knobs = evaluating({.every = every, .batches = 2});
      knobs.transfer = arrival;
      StepPlan plan = plan_of(knobs);
      EXPECT_EQ(find_race(plan), std::nullopt);
      EXPECT_EQ(std::erase_if(plan.operations,
                              [](const Operation& operation) {
                                return is_of_evaluation(operation) &&
                                       std::holds_alternative<RecordEvent>(operation.action);
                              }),
                1U);
      const auto race = find_race(plan);
      ASSERT_TRUE(race) << "every " << every;
      EXPECT_NE(race->find(": ingest the batch'"), std::string::npos) << *race;
    }
  }
}

TEST(Evaluation, ReleasesTheStepsOwnBatchInEveryStep) {
  Knobs knobs = evaluating({.every = 3});
  knobs.alloc.with = Allocator::cuda_async;
  knobs.transfer = {.host = HostMemory::pinned, .device_buffer = DeviceBuffer::per_step};
  const StepPlan plan = plan_of(knobs);
  EXPECT_TRUE(std::holds_alternative<Release>(plan.operations.back().action));
  EXPECT_EQ(plan.operations.back().every, 1);
  EXPECT_EQ(growth_bytes_per_step(plan), 0);
}

// The most activation bytes that are live in the evaluation, by lifetimes.
double activations_in_evaluation(const Knobs& knobs) {
  const StepPlan plan = plan_of(knobs);
  const StepMemory memory = step_memory_of(plan);
  std::int64_t most = 0;
  for (std::size_t index = 0; index < plan.operations.size(); ++index) {
    if (!is_of_evaluation(plan.operations[index])) continue;
    const auto purpose = static_cast<std::size_t>(Purpose::activations);
    most = std::max(most, memory.live[index][purpose] - memory.always[purpose]);
  }
  return static_cast<double>(most);
}

TEST(Evaluation, TakesTurnsInTwoBuffersUnlessItSavesOrStores) {
  const double small = 2 * 512;  // labels and row losses, each a block
  EXPECT_EQ(activations_in_evaluation(evaluating({.every = 1, .batches = 4})),
            2 * activation_bytes_of_a_block + small);
  EXPECT_EQ(
      activations_in_evaluation(evaluating({.every = 1, .batches = 4, .store = EvalStore::host})),
      2 * activation_bytes_of_a_block + small);
  // All earlier outputs are live at the same time as the input and output of the last layer.
  EXPECT_EQ(
      activations_in_evaluation(evaluating({.every = 1, .batches = 4, .store = EvalStore::device})),
      (4 + 1) * activation_bytes_of_a_block + small);
  // Three inputs, the logits and the gradient of the loss are live.
  EXPECT_EQ(
      activations_in_evaluation(evaluating({.every = 1, .batches = 4, .save_for_backward = true})),
      (3 + 1 + 1) * activation_bytes_of_a_block + small);
}

TEST(Evaluation, SharesMemoryWithTheBackwardPassAndIsPartOfTheNeed) {
  const double training = value(small_mlp(), Metric::need);
  const double held = value(small_mlp(), Metric::peak_live);
  const Knobs small = evaluating({.every = 7});
  EXPECT_EQ(value(small, Metric::need), training);
  EXPECT_EQ(value(small, Metric::arena_bytes), value(small_mlp(), Metric::arena_bytes));
  EXPECT_GT(value(small, Metric::peak_live), held) << "every buffer its own";
  const Knobs large = evaluating({.every = 7, .batches = 64, .store = EvalStore::device});
  EXPECT_GT(value(large, Metric::need), training);
  EXPECT_GE(value(large, Metric::arena_bytes), value(large, Metric::need));
}

TEST(Evaluation, AllocatesAndReleasesItsMemoryInItsStepsOnly) {
  const auto allocations = [](const Knobs& knobs, bool of_evaluation) {
    const StepPlan plan = plan_of(knobs);
    return std::count_if(plan.operations.begin(), plan.operations.end(),
                         [&](const Operation& operation) {
                           return std::holds_alternative<Allocate>(operation.action) &&
                                  is_of_evaluation(operation) == of_evaluation;
                         });
  };
  for (const AllocWhen when : {AllocWhen::step, AllocWhen::op}) {
    for (const std::int64_t every : {1, 4}) {
      Knobs plain = small_mlp();
      plain.alloc.with = Allocator::cuda;
      plain.alloc.when = when;
      Knobs knobs = plain;
      knobs.eval = {.every = every};
      EXPECT_EQ(allocations(knobs, false), allocations(plain, false));
      EXPECT_EQ(allocations(knobs, true), 4) << "two activations, labels, row losses";
      EXPECT_EQ(value(knobs, Metric::device_allocs_per_step),
                value(plain, Metric::device_allocs_per_step) + 4.0 / static_cast<double>(every));
      EXPECT_EQ(growth_bytes_per_step(plan_of(knobs)), 0);
      EXPECT_EQ(value(knobs, Metric::peak_live), value(plain, Metric::peak_live))
          << "two activations after the step's own are gone";
    }
  }
}

TEST(Evaluation, StaysInsideTheArenaWithWhatItKeeps) {
  Knobs knobs =
      evaluating({.every = 2, .batches = 3, .store = EvalStore::device, .save_for_backward = true});
  knobs.alloc.with = Allocator::arena;
  const StepPlan plan = plan_of(knobs);
  std::int64_t kept = 0;
  for (const Operation& operation : plan.operations) {
    kept += std::ssize(operation.keeps);
    for (const BufferAccess& access : accesses_of(plan, operation)) {
      const Buffer& buffer = plan.buffers[static_cast<std::size_t>(access.use.buffer)];
      EXPECT_LE(access.use.offset_bytes + access.use.bytes, buffer.bytes)
          << operation.name << ", " << buffer.name;
    }
  }
  EXPECT_EQ(kept, 3 * 3 + 2) << "inputs of every pass, and the outputs of two at the end";
}

TEST(Gemms, HaveMemoryOfTheirOwnUnlessTheyAreOverwritten) {
  Knobs own = small_mlp();
  own.model.inplace = false;
  const auto rises_by = [&](Metric metric) {
    return value(own, metric) - value(small_mlp(), metric);
  };
  EXPECT_EQ(rises_by(Metric::launches_per_step), 0);
  EXPECT_EQ(rises_by(Metric::peak_live), (3 + 2) * activation_bytes_of_a_block);
  EXPECT_EQ(find_race(plan_of(own)), std::nullopt);
}

TEST(Gemms, UseAWorkspaceOfTheSizeThatIsAskedFor) {
  Knobs knobs = small_mlp();
  const double usual = value(knobs, Metric::peak_live);
  EXPECT_EQ(knobs.model.workspace_bytes, 32 * mebibyte);
  for (const std::int64_t mebibytes : {0, 1, 64}) {
    knobs.model.workspace_bytes = mebibytes * mebibyte;
    EXPECT_EQ(value(knobs, Metric::peak_live),
              usual + static_cast<double>((mebibytes - 32) * mebibyte));
  }
}

}  // namespace
}  // namespace stepgate
