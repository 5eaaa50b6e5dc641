// SPDX-License-Identifier: MIT
// Tests which variations of a transformer's step compute the same losses bit by bit, and which only
// within the bound that a run allows. pytorch_transformer_test.cpp tests the losses themselves.
#include <gtest/gtest.h>

#include <tuple>

#include "measure/planned_subject.h"
#include "measure/rounds/same_step.h"
#include "plan/compose/build_step_plan.h"
#include "plan/count/facts_of.h"
#include "tests/contract/device_contract.h"

namespace stepgate {
namespace {

enum class Blocks { of_a_gpt, of_a_llama };

struct Variant {
  std::string name;
  void (*set)(Knobs&);
};

// Returns a model of five blocks, so that the last segment is shorter for segments of two and of
// three blocks. A GPU gets heads and samples that its tensor cores and cuDNN support.
Knobs base(DeviceKind kind, DType dtype, Blocks blocks) {
  const bool large = kind == DeviceKind::cuda;
  Knobs knobs;
  knobs.transfer.host = HostMemory::resident;
  knobs.model = {
      .kind = ModelKind::transformer, .layers = 5, .hidden = large ? 128 : 32, .dtype = dtype};
  knobs.model.heads = 2;
  knobs.model.seq = large ? 128 : 8;
  knobs.model.vocab = 72;
  knobs.batch.size = 4;
  knobs.optim.kind = OptimKind::adamw;
  knobs.optim.clip = 1;
  if (blocks == Blocks::of_a_gpt) return knobs;
  knobs.model.norm = ModelNorm::rms;
  knobs.model.mlp = ModelMlp::swiglu;
  knobs.model.position = ModelPosition::rope;
  knobs.model.tied = true;
  knobs.model.kv_heads = 1;
  return knobs;
}

std::vector<PlannedStep> plans_of(const Knobs& knobs, const std::vector<Variant>& variants) {
  Scenario scenario;
  scenario.name = "by_hand";
  scenario.variants.push_back({.name = "as_it_is", .knobs = knobs, .place = {}});
  for (const Variant& variant : variants) {
    scenario.variants.push_back({.name = variant.name, .knobs = knobs, .place = {}});
    variant.set(scenario.variants.back().knobs);
  }
  return with_facts(build_step_plans(scenario, 20260412));
}

class TransformerVariants : public testing::TestWithParam<std::tuple<DType, Blocks>> {
 protected:
  static Knobs knobs_for(DeviceKind kind) {
    const auto [dtype, blocks] = GetParam();
    return base(kind, dtype, blocks);
  }
};

TEST_P(TransformerVariants, AreEqualToTheBitWhereTheSameNumbersAreAddedInTheSameOrder) {
  const std::vector<Variant> variants = {
      {"full", [](Knobs& knobs) { knobs.memory.checkpoint_every = 1; }},
      {"every_2", [](Knobs& knobs) { knobs.memory.checkpoint_every = 2; }},
      {"every_3", [](Knobs& knobs) { knobs.memory.checkpoint_every = 3; }},
      {"graph", [](Knobs& knobs) { knobs.launch.via = LaunchVia::graph; }},
      {"per_tensor", [](Knobs& knobs) { knobs.optim.impl = OptimImpl::per_tensor; }},
      {"averaged", [](Knobs& knobs) { knobs.optim.average = 0.99; }},
      {"arena", [](Knobs& knobs) { knobs.alloc.with = Allocator::arena; }},
      {"autotuned_gemms", [](Knobs& knobs) { knobs.launch.gemm = GemmChoice::autotune; }},
  };
  for (const DeviceCase& test : device_cases()) {
    if (test.kind == DeviceKind::simulated) continue;  // has no numbers
    const std::vector<PlannedStep> plans = plans_of(knobs_for(test.kind), variants);
    const auto device = test.make();
    const std::vector<float> expected = device->load(plans.front())->run({.steps = 4}).losses;
    ASSERT_EQ(expected.size(), 4u);
    EXPECT_NE(expected.back(), expected.front());
    for (const StepPlan& plan : plans)
      EXPECT_EQ(device->load(plan)->run({.steps = 4}).losses, expected)
          << test.name << " " << plan.variant;
  }
}

// The update has cast the weights already. Only the first weights may differ in their last bit:
// they are made of doubles, and the cast ones of a master in fp32.
TEST_P(TransformerVariants, WithAMasterTrainAlikeWhereverItIsCast) {
  for (const DeviceCase& test : device_cases()) {
    if (test.kind == DeviceKind::simulated) continue;
    Knobs knobs = knobs_for(test.kind);
    if (!is_16_bit(knobs.model.dtype)) continue;
    knobs.optim.master = true;
    const std::vector<PlannedStep> plans = plans_of(
        knobs, {{"cast_again", [](Knobs& cast) { cast.optim.cast = MasterCast::forward; }}});
    const auto device = test.make();
    const std::vector<float> expected = device->load(plans[0])->run({.steps = 4}).losses;
    const std::vector<float> losses = device->load(plans[1])->run({.steps = 4}).losses;
    EXPECT_NE(expected.back(), expected.front());
    for (std::size_t step = 0; step < expected.size(); ++step)
      EXPECT_NEAR(losses[step], expected[step], 1e-4 * expected[step]) << test.name << " " << step;
  }
}

TEST_P(TransformerVariants, OfAnotherOrderOfAdditionsPassTheLedgerAndTrainOnEveryPart) {
  const std::vector<Variant> variants = {
      {"halves", [](Knobs& knobs) { knobs.batch.accumulate = 2; }},
      {"quarters", [](Knobs& knobs) { knobs.batch.accumulate = 4; }},
      {"any", [](Knobs& knobs) { knobs.launch.attention_sums = AttentionSums::any; }},
  };
  for (const DeviceCase& test : device_cases()) {
    if (test.kind == DeviceKind::simulated) continue;
    const std::vector<PlannedStep> plans = plans_of(knobs_for(test.kind), variants);
    const auto device = test.make();
    const std::vector<Subject> subjects = subjects_of(plans);
    SameStep ledger(subjects);
    ledger.begin(0);
    for (std::size_t variant = 0; variant < plans.size(); ++variant)
      ledger.add(static_cast<int>(variant), device->load(plans[variant])->run({.steps = 30}));
    const auto found = ledger.first_difference();
    EXPECT_FALSE(found) << test.name << " "
                        << plans[static_cast<std::size_t>(found->variant)]->variant << " at step "
                        << found->step << ": " << found->value << " instead of " << found->expected;
  }
}

// If the variants counted as different arithmetic, their losses would not be compared at all.
TEST_P(TransformerVariants, AreComparedAlthoughTheyAccumulateOrRecompute) {
  const std::vector<Variant> variants = {
      {"quarters", [](Knobs& knobs) { knobs.batch.accumulate = 4; }},
      {"full", [](Knobs& knobs) { knobs.memory.checkpoint_every = 1; }},
      {"unfused", [](Knobs& knobs) { knobs.launch.fuse = Fuse::none; }},
  };
  const std::vector<PlannedStep> plans = plans_of(knobs_for(DeviceKind::reference), variants);
  const auto disagrees = [&](int variant) {
    const std::vector<Subject> subjects = subjects_of(plans);
    SameStep ledger(subjects);
    ledger.begin(0);
    for (int other = 0; other < static_cast<int>(plans.size()); ++other) {
      StepResult result;
      result.steps = 1;
      result.losses = {other == variant ? 3.0F : 4.0F};
      ledger.add(other, result);
    }
    return ledger.first_difference().has_value();
  };
  EXPECT_TRUE(disagrees(1));
  EXPECT_TRUE(disagrees(2));
  EXPECT_FALSE(disagrees(3)) << "other kernels round at other places";
}

// The samples have other lengths, or the same lengths in another order.
TEST_P(TransformerVariants, AreNotComparedWhereTheirSamplesAreOfOtherLengths) {
  const std::vector<Variant> variants = {
      {"padded",
       [](Knobs& knobs) {
         knobs.batch.lengths = {8, 4};
       }},
      {"more_padded",
       [](Knobs& knobs) {
         knobs.batch.lengths = {7, 5};
       }},
      {"packed",
       [](Knobs& knobs) {
         knobs.batch.lengths = {8, 4};
         knobs.batch.packed = true;
       }},
  };
  const std::vector<PlannedStep> plans = plans_of(knobs_for(DeviceKind::reference), variants);
  const std::vector<Subject> subjects = subjects_of(plans);
  SameStep ledger(subjects);
  ledger.begin(0);
  for (int variant = 0; variant < static_cast<int>(plans.size()); ++variant) {
    StepResult result;
    result.steps = 1;
    result.losses = {static_cast<float>(variant)};
    ledger.add(variant, result);
  }
  EXPECT_FALSE(ledger.first_difference());
}

INSTANTIATE_TEST_SUITE_P(EveryDTypeAndBlocks, TransformerVariants,
                         testing::Combine(testing::Values(DType::fp32, DType::tf32, DType::bf16,
                                                          DType::fp16),
                                          testing::Values(Blocks::of_a_gpt, Blocks::of_a_llama)));

}  // namespace
}  // namespace stepgate
