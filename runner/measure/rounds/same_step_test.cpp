// SPDX-License-Identifier: MIT
// Tests when losses and gradients of two variants count as equal.
#include "measure/rounds/same_step.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <utility>

#include "base/files/read_file.h"
#include "measure/planned_subject.h"
#include "measure/testing/fake_device.h"
#include "plan/testing/plan_by_hand.h"

namespace stepgate {
namespace {

StepResult losses(std::int64_t first_step, std::vector<float> values) {
  StepResult result;
  result.first_step = first_step;
  result.steps = static_cast<std::int64_t>(values.size());
  result.losses = std::move(values);
  return result;
}

TEST(SameStep, AcceptsRoundingAndNamesTheFirstStepBeyondIt) {
  const auto steps = subjects_named({"baseline", "fix"});
  SameStep same(steps);
  same.begin(0);
  same.add(0, losses(0, {2.0F, 1.5F, 1.0F}));
  same.add(1, losses(0, {2.0F, 1.50001F, 1.001F}));
  const auto found = same.first_difference();
  ASSERT_TRUE(found);
  EXPECT_EQ(found->variant, 1);
  EXPECT_EQ(found->against, 0);
  EXPECT_EQ(found->step, 2);
  EXPECT_FLOAT_EQ(static_cast<float>(found->value), 1.001F);
  EXPECT_DOUBLE_EQ(found->bound, loss_bound({DType::fp32}, 0) * std::sqrt(128.0 / 64));
}

TEST(SameStep, NeverAcceptsANumberThatIsNone) {
  const auto steps = subjects_named({"baseline", "fix"});
  SameStep same(steps);
  same.begin(0);
  const float none = std::numeric_limits<float>::quiet_NaN();
  same.add(0, losses(0, {none}));
  same.add(1, losses(0, {none}));
  const auto found = same.first_difference();
  ASSERT_TRUE(found) << "two variants that both diverged agree on nothing";
  EXPECT_EQ(found->step, 0);
}

TEST(SameStep, WaitsUntilBothHaveRunAStep) {
  const auto steps = subjects_named({"baseline", "fix"});
  SameStep same(steps);
  same.begin(0);
  same.add(0, losses(0, {1.0F, 1.0F}));
  same.add(1, losses(0, {1.0F}));
  EXPECT_FALSE(same.first_difference());
  same.add(1, losses(1, {2.0F}));
  const auto found = same.first_difference();
  ASSERT_TRUE(found);
  EXPECT_EQ(found->step, 1);
}

// The allowed difference of losses depends on the number of updates, not on the step number.
TEST(SameStep, CountsFromTheStepThatItsLoadBeganWith) {
  const auto steps = subjects_named({"baseline", "fix"});
  SameStep same(steps);
  same.begin(5000);
  same.add(0, losses(5000, {1.0F, 1.0F}));
  same.add(1, losses(5000, {1.0F, 1.0005F}));
  const auto found = same.first_difference();
  ASSERT_TRUE(found);
  EXPECT_EQ(found->step, 5001);
  EXPECT_DOUBLE_EQ(found->bound, loss_bound({DType::fp32}, 0) * std::sqrt(128.0 / 64));
}

TEST(SameStep, ComparesOnlyVariantsOfTheSameArithmetic) {
  auto plans = plans_named({"baseline", "larger", "larger_fix"});
  plans[1].batch_sizes = plans[2].batch_sizes = {128};
  const auto steps = subjects_of(with_facts(plans));
  SameStep same(steps);
  same.begin(0);
  same.add(0, losses(0, {1.0F}));
  same.add(1, losses(0, {3.0F}));
  same.add(2, losses(0, {4.0F}));
  const auto found = same.first_difference();
  ASSERT_TRUE(found);
  EXPECT_EQ(found->variant, 2);
  EXPECT_EQ(found->against, 1);
}

// Returns whether the losses of a step are compared with those of the same step after `change`.
bool compares(const Knobs& knobs, void (*change)(ModelKnobs&)) {
  Knobs changed = knobs;
  change(changed.model);
  const auto steps = subjects_of(with_facts({plan_of(knobs), plan_of(changed)}));
  SameStep same(steps);
  same.begin(0);
  same.add(0, losses(0, {1.0F}));
  same.add(1, losses(0, {3.0F}));
  return same.first_difference().has_value();
}

// Each rank has its own batches, and the loss is the mean over them.
TEST(SameStep, ComparesOnlyVariantsOfAsManyRanks) {
  std::vector<StepPlan> plans = plans_named({"alone", "two", "two_too"});
  plans[1].ranks.count = plans[2].ranks.count = 2;
  const auto steps = subjects_of(with_facts(plans));
  SameStep same(steps);
  same.begin(0);
  same.add(0, losses(0, {2.0F}));
  same.add(1, losses(0, {3.0F}));
  same.add(2, losses(0, {3.0F}));
  EXPECT_FALSE(same.first_difference());
  same.add(0, losses(1, {3.0F}));
  same.add(1, losses(1, {3.0F}));
  same.add(2, losses(1, {2.0F}));
  EXPECT_TRUE(same.first_difference());
}

// Models are distinguished by their knobs even where their parameters have equal sizes.
TEST(SameStep, ComparesOnlyVariantsOfTheSameModel) {
  Knobs chase;
  chase.model.kind = ModelKind::chase;
  EXPECT_FALSE(compares(chase, [](ModelKnobs& model) { model.accesses *= 2; }));

  Knobs padded = small_transformer();
  padded.model.vocab = 50;
  padded.model.vocab_multiple = 64;
  EXPECT_FALSE(compares(padded, [](ModelKnobs& model) { model.vocab = 64; }));
  EXPECT_FALSE(compares(padded, [](ModelKnobs& model) { model.heads = 4; }));
  EXPECT_TRUE(compares(padded, [](ModelKnobs&) {}));

  Knobs elementwise;
  elementwise.model = {.kind = ModelKind::elementwise, .hidden = 64, .kernels = 3};
  EXPECT_FALSE(compares(elementwise, [](ModelKnobs& model) { model.kernels = 4; }));
}

TEST(SameStep, ComparesVariantsThatComputeTheSameModelInAnotherWay) {
  Knobs elementwise;
  elementwise.model = {.kind = ModelKind::elementwise, .hidden = 64, .kernels = 3};
  EXPECT_TRUE(compares(elementwise, [](ModelKnobs& model) { model.kernels = 5; }));
  EXPECT_TRUE(compares(elementwise, [](ModelKnobs& model) { model.inplace = false; }));
  EXPECT_TRUE(compares(elementwise, [](ModelKnobs& model) { model.layout = Layout::records; }));
  EXPECT_TRUE(compares(elementwise, [](ModelKnobs& model) { model.stride = 4; }));
  EXPECT_TRUE(compares(elementwise, [](ModelKnobs& model) { model.extra_copies = 2; }));

  Knobs resnet;
  resnet.model = {.kind = ModelKind::resnet, .layers = 14, .image = 64};
  EXPECT_TRUE(compares(resnet, [](ModelKnobs& model) { model.layout_copies = true; }));

  Knobs spin;
  spin.model.kind = ModelKind::spin;
  EXPECT_TRUE(compares(spin, [](ModelKnobs& model) { model.kernels = 5; }));
  EXPECT_TRUE(compares(spin, [](ModelKnobs& model) { model.kernel_us = 5; }));
}

TEST(SameStep, TakesAWorkspaceOfAnotherSizeForAnotherArithmeticButNotAnEvaluation) {
  auto plans = plans_named({"baseline", "evaluated", "tuned", "tuned_fix"});
  LaunchKernel cross_entropy;
  cross_entropy.kernel = "cross_entropy";
  plans[1].operations.push_back(
      {.name = "loss of an evaluation", .phase = Phase::evaluation, .action = cross_entropy});
  for (const std::size_t variant : {2, 3}) {
    plans[variant].buffers.push_back(
        {.name = "gemm workspace", .purpose = Purpose::workspace, .bytes = 64 * 1024 * 1024});
  }
  std::vector<Subject> steps;
  for (StepPlan& plan : plans) steps.push_back(subject_of({std::move(plan), PlanFacts{}}));
  SameStep same(steps);
  same.begin(0);
  for (int variant = 0; variant < 4; ++variant)
    same.add(variant, losses(0, {variant < 2 ? 1.0F : 3.0F}));
  EXPECT_FALSE(same.first_difference());
  for (int variant = 0; variant < 4; ++variant)
    same.add(variant, losses(1, {1.0F + static_cast<float>(variant)}));
  const auto found = same.first_difference();
  ASSERT_TRUE(found);
  EXPECT_EQ(found->variant, 1);
  EXPECT_EQ(found->against, 0);
}

TEST(SameStep, IsTenTimesWiderAfterAHundredSteps) {
  for (const DType dtype : {DType::fp32, DType::tf32, DType::bf16}) {
    EXPECT_DOUBLE_EQ(loss_bound({dtype}, 100), 10 * loss_bound({dtype}, 99));
  }
  EXPECT_LT(loss_bound({DType::fp32}, 0), loss_bound({DType::tf32}, 0));
  EXPECT_LT(loss_bound({DType::tf32}, 0), loss_bound({DType::bf16}, 0));
  EXPECT_LT(loss_bound({DType::bf16}, 0), loss_bound({DType::bf16, true}, 0));
}

// A part of a batch has scales of its own in fp8, and so another step than the whole.
TEST(SameStep, DoesNotCompareScalesOfOtherPartsOfABatch) {
  Knobs knobs = small_transformer();
  knobs.model.dtype = DType::bf16;
  const auto reasons = [&](ModelFp8 fp8) {
    knobs.model.fp8 = fp8;
    std::vector<Subject> subjects;
    for (const std::int64_t parts : {1, 2}) {
      knobs.batch.accumulate = parts;
      subjects.push_back(subject_of({plan_of(knobs), PlanFacts{}}));
    }
    std::vector<std::string> told;
    for (const NotCompared& pair : pairs_not_compared(subjects)) told.push_back(pair.reason);
    return told;
  };
  EXPECT_EQ(reasons(ModelFp8::none), std::vector<std::string>{});
  const std::vector<std::string> scales{"scales in fp8 of other parts of the batch"};
  EXPECT_EQ(reasons(ModelFp8::current), scales);
  EXPECT_EQ(reasons(ModelFp8::delayed), scales);
}

// Prints the bounds of the code as the table in docs/how-it-decides.md.
using LossBound = std::function<double(const Precision&, std::int64_t step)>;
std::string table_of_bounds(const LossBound& loss) {
  constexpr std::array precisions{Precision{DType::fp32}, Precision{DType::tf32},
                                  Precision{DType::bf16}, Precision{DType::bf16, true},
                                  Precision{DType::fp16}};
  std::string table =
      "\n| what | when | fp32 | tf32 | bf16 | fp8 | fp16 |\n|---|---|---|---|---|---|---|\n";
  const auto add_row = [&](const std::string& what_and_when, const auto& bound) {
    table += fmt::format("| {} |", what_and_when);
    for (const Precision& precision : precisions)
      table += fmt::format(" {:.6g} % |", 100 * bound(precision));
    table += '\n';
  };
  std::int64_t first = 0;
  const auto of_first = [&](const Precision& precision) { return loss(precision, first); };
  for (std::int64_t step = 1; step < 10'000; ++step) {
    if (std::ranges::all_of(precisions, [&](const Precision& precision) {
          return loss(precision, step) == of_first(precision);
        }))
      continue;
    add_row(fmt::format("every loss | steps {} to {} of a load", first + 1, step), of_first);
    first = step;
  }
  add_row("every loss | all later ones", of_first);
  add_row(
      "every parameter's gradient, by norm | the first two steps",
      [](const Precision& precision) { return gradient_bound(precision, ModelLaunches::others); });
  add_row(
      "the same where both models make the same launches and collectives | the first two steps",
      [](const Precision& precision) { return gradient_bound(precision, ModelLaunches::same); });
  return table + '\n';
}

TEST(SameStep, HasTheBoundsThatThePageHas) {
  const auto page = read_file(STEPGATE_SOURCE_DIR "/docs/how-it-decides.md", "a page");
  const std::string& text = std::get<std::string>(page);
  const std::string table = table_of_bounds(loss_bound);
  EXPECT_NE(text.find(table), std::string::npos) << "its table is now:" << table;
  const auto wider = [](const Precision& precision, std::int64_t step) {
    return loss_bound(precision, step) * (precision.in_fp8 && step == 7 ? 2 : 1);
  };
  EXPECT_EQ(text.find(table_of_bounds(wider)), std::string::npos);
}

std::vector<Subject> steps_that_learn() {
  auto steps = subjects_named({"baseline", "fix"});
  for (Subject& step : steps) step.arithmetic->parameters = {"weight", "bias"};
  return steps;
}

// Returns a gradient for each parameter, with all elements set to this value.
StepResult gradients(std::int64_t step, float weight, float bias) {
  StepResult result = losses(step, {1.0F});
  for (const auto& [elements, value] : {std::pair(1000, weight), std::pair(10, bias)}) {
    const std::vector<float> values(static_cast<std::size_t>(elements), value);
    add_part({.elements = elements}, values.data(), DType::fp32, result.gradients.emplace_back());
  }
  return result;
}

// Rounding in fp8 moves gradients far, where sums have another order; a third of one is further
// off.
TEST(SameStep, NoticesAThirdOfAGradientInFp8) {
  for (const auto& [weight, is_another] : {std::pair(1.25F, false), {3.0F, true}}) {
    auto steps = steps_that_learn();
    for (Subject& step : steps) {
      step.dtype = DType::bf16;
      step.arithmetic->model.fp8 = ModelFp8::current;
      step.arithmetic->attention_sums = AttentionSums::any;
    }
    SameStep same(steps);
    same.begin(0);
    same.add(0, gradients(0, 1, 0.5F));
    same.add(1, gradients(0, weight, 0.5F));
    EXPECT_EQ(same.first_difference().has_value(), is_another) << weight;
  }
}

TEST(SameStep, NamesTheParameterWhoseGradientIsAnother) {
  const auto steps = steps_that_learn();
  SameStep same(steps);
  same.begin(0);
  same.add(0, gradients(0, 1, 0.5F));
  same.add(1, gradients(0, 1 + 1e-6F, 0.5F));
  EXPECT_FALSE(same.first_difference());
  EXPECT_NEAR(same.compared().front().gradient, 1e-6, 5e-7);
  EXPECT_EQ(same.compared().front().gradients, 2);
  same.add(0, gradients(1, 1, 0.5F));
  same.add(1, gradients(1, 1, 0));
  const auto found = same.first_difference();
  ASSERT_TRUE(found);
  EXPECT_EQ(found->step, 1);
  EXPECT_EQ(found->parameter, "bias");
  EXPECT_NEAR(found->value, 1, 0.5);
  EXPECT_EQ(found->bound, gradient_bound({DType::fp32}, ModelLaunches::same));
}

TEST(SameStep, ComparesGradientsThatAreFiniteInOneOfThemAlone) {
  const float infinite = std::numeric_limits<float>::infinity();
  const auto steps = steps_that_learn();
  SameStep same(steps);
  same.begin(0);
  same.add(0, gradients(0, infinite, 1));
  same.add(1, gradients(0, infinite, 1));
  EXPECT_FALSE(same.first_difference()) << "both skip the update";
  same.add(0, gradients(1, 1, 1));
  same.add(1, gradients(1, infinite, 1));
  const auto found = same.first_difference();
  ASSERT_TRUE(found);
  EXPECT_EQ(found->parameter, "weight");
}

// Counts, for each pair of variants, the comparisons of the pair and the lines that say why it is
// not compared.
std::map<std::pair<int, int>, int> covered(const std::vector<Subject>& steps, bool gradients) {
  std::map<std::pair<int, int>, int> pairs;
  std::map<int, std::vector<int>> compared;  // by their reference
  const SameStep same(steps);
  for (const ComparedPair& pair : same.compared()) compared[pair.against].push_back(pair.variant);
  for (auto& [reference, alike] : compared) {
    alike.push_back(reference);
    for (const int one : alike) {
      for (const int other : alike) pairs[{one, other}] += one < other ? 1 : 0;
    }
  }
  for (const NotCompared& line : pairs_not_compared(steps)) {
    for (const int one : line.variants) {
      for (const int other : line.against) {
        int& count = pairs[std::minmax(one, other)];
        count += !line.gradients_alone ? 1 : gradients ? -1 : 0;  // of those two, losses are
      }
    }
  }
  return pairs;
}

TEST(SameStep, SaysOfEveryPairOnceWhetherItIsComparedOrWhyNot) {
  auto plans = plans_named({"a", "larger", "b", "wider", "larger_too", "c"});
  plans[1].batch_sizes = plans[4].batch_sizes = {128};
  plans[3].dtype = DType::bf16;
  // In 'a' and 'c', the gradients are released inside the graph that reads them.
  for (const std::size_t lost : {0, 5}) {
    plans[lost].buffers = {{.name = "gradients", .allocated_by = AllocatedBy::cuda}};
    plans[lost].operations = {{.name = "adamw",
                               .phase = Phase::evaluation,
                               .action = LaunchKernel{.operands = {{.buffer = 0}}},
                               .captured = true,
                               .reads_gradients = GradientsRead{}}};
  }
  std::vector<Subject> steps;
  for (StepPlan& plan : plans) steps.push_back(subject_of({std::move(plan), PlanFacts{}}));
  for (int one = 0; one < 6; ++one) {
    for (int other = one + 1; other < 6; ++other) {
      const auto pair = std::pair(one, other);
      EXPECT_EQ(covered(steps, false)[pair], 1) << one << ' ' << other;
      const bool reads_none = other == 5 ? one == 0 || one == 2 : one == 0 && other == 2;
      EXPECT_EQ(covered(steps, true)[pair], reads_none ? 0 : 1) << one << ' ' << other;
    }
  }
  const SameStep same(steps);
  ASSERT_EQ(same.compared().size(), 3U);
  EXPECT_EQ(same.compared()[0].against, 2) << "whose gradients can be read";
  const auto lines = pairs_not_compared(steps);
  ASSERT_EQ(lines.size(), 5U);
  EXPECT_EQ(lines[0].variants, (std::vector{0}));
  EXPECT_EQ(lines[0].against, (std::vector{2, 5}));
  EXPECT_TRUE(lines[0].gradients_alone);
  EXPECT_EQ(lines[1].variants, (std::vector{5}));
  EXPECT_EQ(lines[1].against, (std::vector{2}));
  EXPECT_EQ(lines[2].variants, (std::vector{1, 4}));
  EXPECT_EQ(lines[2].against, (std::vector{0, 2, 5}));
  EXPECT_EQ(lines[2].reason, "other batches");
  EXPECT_EQ(lines[3].variants, (std::vector{3}));
  EXPECT_EQ(lines[3].reason, "another precision");
}

// 'c' differs from the classes of 'a' and 'b' in the same property, which makes one line.
TEST(SameStep, SaysWhatAVariantHasOtherwiseThanAllOthersOnce) {
  auto plans = plans_named({"a", "b", "c"});
  plans[0].batch_sizes = {32};
  plans[1].batch_sizes = {16};
  const auto lines = pairs_not_compared(subjects_of(with_facts(plans)));
  ASSERT_EQ(lines.size(), 2U);
  EXPECT_EQ(lines[1].variants, (std::vector{2}));
  EXPECT_EQ(lines[1].against, (std::vector{0, 1}));
}

// Both variants may share the kernel that computes correctly only for a number of calls.
TEST(SameStep, ComparesAVariantWithItsOwnFirstSteps) {
  const auto steps = steps_that_learn();
  SameStep same(steps);
  const auto run = [&](float weight) {
    same.begin(0);
    same.add(0, gradients(0, weight, 1));
    same.add(1, gradients(0, weight, 1));
  };
  run(1);
  same.remember();
  EXPECT_FALSE(same.difference_from_before());
  EXPECT_FALSE(same.first_difference());
  run(1.5F);
  const auto found = same.difference_from_before();
  EXPECT_FALSE(same.first_difference()) << "both are wrong alike";
  ASSERT_TRUE(found);
  EXPECT_EQ(found->variant, found->against);
  EXPECT_EQ(found->parameter, "weight");
  same.begin(5);
  same.add(0, gradients(5, 3, 1));
  same.add(1, gradients(5, 3, 1));
  EXPECT_FALSE(same.difference_from_before()) << "of another step";
}

// Each load draws its first step anew. With a short period, few of the first steps differ.
TEST(SameStep, ComparesNoStepThatComesAfterAnotherNumberOfUpdates) {
  const auto steps = steps_that_learn();
  SameStep same(steps);
  const auto run = [&](std::int64_t first_step) {
    same.begin(first_step);
    for (std::int64_t trained = 0; trained < 2; ++trained) {
      const auto weight = 1 + static_cast<float>(trained);  // learns
      for (int variant = 0; variant < 2; ++variant)
        same.add(variant, gradients(first_step + trained, weight, 1));
    }
  };
  run(4);
  same.remember();
  run(3);
  EXPECT_FALSE(same.difference_from_before());
  run(4);
  EXPECT_FALSE(same.difference_from_before());
}

// After a reduction, all ranks have the same gradients. This is checked even for a variant that is
// compared with no other.
TEST(SameStep, NamesTheRankThatHasAnotherGradient) {
  const auto steps = steps_that_learn();
  SameStep same{std::span(steps).first(1)};
  same.begin(3);
  StepResult ranks = gradients(3, 1, 0.5F);
  ranks.other_gradients = {ranks.gradients, gradients(3, 1 + 1e-6F, 0.5F).gradients};
  same.add(0, ranks);
  EXPECT_FALSE(same.first_difference());
  ranks.first_step = 4;
  ranks.other_gradients[1] = gradients(4, 1, 0.25F).gradients;
  same.add(0, ranks);
  const auto found = same.first_difference();
  ASSERT_TRUE(found);
  EXPECT_EQ(found->rank, 2);
  EXPECT_EQ(found->step, 4);
  EXPECT_EQ(found->parameter, "bias");
  EXPECT_EQ(found->bound, gradient_bound({DType::fp32}, ModelLaunches::same));
  same.begin(3);
  EXPECT_FALSE(same.first_difference()) << "in the next load";
  ranks.first_step = 3;
  ranks.other_gradients[1] = {{}, {}};
  same.add(0, ranks);
  EXPECT_TRUE(same.first_difference()) << "a rank that has read nothing";
}

// A norm of half a batch has other statistics.
TEST(SameStep, LeavesBatchNormsOfPartsOfABatchAlone) {
  std::vector<StepPlan> plans;
  for (const std::int64_t parts : {1, 2}) {
    Knobs knobs = small_mlp();
    knobs.model = {.kind = ModelKind::resnet, .layers = 14};
    knobs.optim.kind = OptimKind::momentum;
    knobs.batch.accumulate = parts;
    plans.push_back(plan_of(knobs));
  }
  const auto steps = subjects_of(with_facts(plans));
  const SameStep same(steps);
  EXPECT_TRUE(same.compared().empty());
  const auto lines = pairs_not_compared(steps);
  ASSERT_EQ(lines.size(), 1U);
  EXPECT_EQ(lines[0].reason, "batch norms of other parts of the batch");
}

// Equal kernels do not suffice for the narrow bound, since collectives add numbers too.
TEST(SameStep, PassesOtherCollectivesToTheWiderBound) {
  Knobs knobs = small_transformer();
  knobs.ranks.count = 2;
  knobs.batch.accumulate = 2;
  std::vector<StepPlan> plans = {plan_of(knobs), plan_of(knobs)};
  knobs.ranks.sync_each_part = true;
  plans.push_back(plan_of(knobs));
  const auto steps = subjects_of(with_facts(plans));
  const SameStep same(steps);
  ASSERT_EQ(same.compared().size(), 2U);
  EXPECT_TRUE(same.compared()[0].adds_alike);
  EXPECT_FALSE(same.compared()[1].adds_alike);
  EXPECT_EQ(same.compared()[1].gradient_bound,
            gradient_bound({DType::bf16}, ModelLaunches::others));
}

// Two runs of one variant differ by rounding where cuDNN's attention adds in any order, so even
// equal launches are compared within it.
TEST(SameStep, ComparesSumsOfAnyOrderWithinRounding) {
  std::vector<StepPlan> plans;
  for (const AttentionSums sums :
       {AttentionSums::fixed, AttentionSums::any, AttentionSums::any, AttentionSums::fixed}) {
    Knobs knobs = small_transformer();
    knobs.launch.attention_sums = sums;
    plans.push_back(plan_of(knobs));
  }
  const auto compared_pairs = [](const std::vector<StepPlan>& of) {
    return SameStep(subjects_of(with_facts(of))).compared();
  };
  const auto against_fixed = compared_pairs(plans);
  ASSERT_EQ(against_fixed.size(), 3U);
  EXPECT_FALSE(against_fixed[0].adds_alike);
  EXPECT_TRUE(against_fixed[2].adds_alike);
  const auto of_any = compared_pairs({plans[1], plans[2]});
  ASSERT_EQ(of_any.size(), 1U);
  EXPECT_FALSE(of_any[0].adds_alike);
  EXPECT_EQ(of_any[0].gradient_bound, gradient_bound({DType::bf16}, ModelLaunches::others));

  const auto steps = subjects_of(with_facts({plans[0], plans[1]}));
  const auto is_refused = [&](float loss) {
    SameStep same(steps);
    same.begin(0);
    same.add(0, losses(0, {4, 4}));
    same.add(1, losses(0, {4, loss}));
    return same.first_difference().has_value();
  };
  EXPECT_FALSE(is_refused(std::nextafter(4.0F, 5.0F)));
  EXPECT_TRUE(is_refused(4.0F * 1.01F));
}

// One variant skips its update, and later gradients are not comparable.
TEST(SameStep, LeavesFp16ThatOverflowsInOneOrderOfAdditionsAlone) {
  const float infinite = std::numeric_limits<float>::infinity();
  for (const bool adds_alike : {false, true}) {
    std::vector<StepPlan> plans;
    for (const std::int64_t parts : {1, adds_alike ? 1 : 2}) {
      Knobs knobs = small_transformer();
      knobs.model.dtype = DType::fp16;
      knobs.batch.accumulate = parts;
      plans.push_back(plan_of(knobs));
      plans.back().parameters = {{"weight", 0, 1000}, {"bias", 1000, 10}};
    }
    const auto steps = subjects_of(with_facts(plans));
    SameStep same(steps);
    same.begin(0);
    ASSERT_EQ(same.compared().size(), 1U);
    EXPECT_EQ(same.compared()[0].adds_alike, adds_alike);
    same.add(0, gradients(0, 1, 1));
    same.add(1, gradients(0, infinite, 1));
    same.add(0, losses(1, {1}));
    same.add(1, losses(1, {2}));
    EXPECT_EQ(same.first_difference().has_value(), adds_alike);
    same.begin(0);
    same.add(0, gradients(0, 1, 1));
    same.add(1, gradients(0, 2, 1));
    EXPECT_TRUE(same.first_difference()) << "in the next load";
  }
}

TEST(SameStep, WidensTheBoundsOfGradientsByTheDepthOfTheModel) {
  std::vector<double> bounds;
  for (const std::int64_t layers : {2, 32}) {
    Knobs knobs = small_transformer();
    knobs.model.layers = layers;
    const auto steps = subjects_of(with_facts({plan_of(knobs), plan_of(knobs)}));
    bounds.push_back(SameStep(steps).compared().at(0).gradient_bound);
  }
  EXPECT_DOUBLE_EQ(bounds[0], gradient_bound({DType::bf16}, ModelLaunches::same));
  EXPECT_DOUBLE_EQ(bounds[1], 2 * bounds[0]);
}

TEST(SameStep, ComparesOnlyVariantsOfTheSameUpdate) {
  Knobs knobs = small_transformer();
  std::vector<StepPlan> plans = {plan_of(knobs)};
  knobs.optim.clip = 1;  // with 16-bit parameters, the same kernels compute the norm
  plans.push_back(plan_of(knobs));
  const auto pairs = pairs_not_compared(subjects_of(with_facts(plans)));
  ASSERT_EQ(pairs.size(), 1U);
  EXPECT_EQ(pairs[0].reason, "another update");
}

// A program without a plan, for example, has a step without arithmetic.
TEST(SameStep, SaysThatNobodyKnowsWhatAStepWithoutArithmeticComputes) {
  auto steps = steps_that_learn();
  steps.push_back({.name = "program"});
  SameStep same(steps);
  same.begin(0);
  for (const int variant : {0, 1, 2}) same.add(variant, gradients(0, variant == 2 ? 2 : 1, 1));
  EXPECT_FALSE(same.first_difference());
  const auto pairs = pairs_not_compared(steps);
  ASSERT_EQ(pairs.size(), 1U);
  EXPECT_EQ(pairs[0].variants, std::vector{2});
  EXPECT_EQ(pairs[0].against, (std::vector{0, 1}));
  EXPECT_EQ(pairs[0].reason, "what they compute is not known");
}

TEST(SameStep, SaysOnceThatProgramsAreNotCompared) {
  const std::vector<Subject> programs{{.name = "a"}, {.name = "b"}, {.name = "c"}};
  const auto pairs = pairs_not_compared(programs);
  ASSERT_EQ(pairs.size(), 1U);
  EXPECT_EQ(pairs[0].variants, (std::vector{1, 2}));
  EXPECT_EQ(pairs[0].against, std::vector{0});
  EXPECT_TRUE(pairs_not_compared(std::vector{programs.front()}).empty());
}

TEST(SameStep, RefusesAParameterThatIsNotReadAsAWholeInBoth) {
  const auto steps = steps_that_learn();
  SameStep same(steps);
  same.begin(0);
  StepResult less = gradients(0, 1, 1);
  less.gradients[1] = {};
  same.add(0, gradients(0, 1, 1));
  same.add(1, less);
  const auto found = same.first_difference();
  ASSERT_TRUE(found);
  EXPECT_EQ(found->parameter, "bias");
}

}  // namespace
}  // namespace stepgate
