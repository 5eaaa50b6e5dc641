// SPDX-License-Identifier: MIT
// Tests that several ranks compute what one rank computes with all their batches: losses, gradients
// and weights, however they shard the model, in every permitted order. The reference device refuses
// a run whose ranks end with different weights, so every run here shows that they are bit-equal.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "device/reference/reference_device.h"
#include "plan/testing/plan_by_hand.h"

namespace stepgate {
namespace {

constexpr std::int64_t samples = 2;  // of a rank
constexpr std::int64_t steps = 10;

Knobs model_of(DType dtype) {
  Knobs knobs;
  knobs.model = {.kind = ModelKind::transformer, .layers = 2, .hidden = 16, .dtype = dtype};
  knobs.model.heads = 2;
  knobs.model.seq = 8;
  knobs.model.vocab = 24;
  knobs.batch.size = samples;
  knobs.optim.kind = OptimKind::adamw;
  knobs.optim.master = is_16_bit(dtype);
  return knobs;
}

// Returns one rank with the batches of all ranks, one part for each.
Knobs alone(Knobs knobs, std::int64_t ranks) {
  knobs.batch.size *= ranks;
  knobs.batch.accumulate *= ranks;
  return knobs;
}

Knobs of_ranks(Knobs knobs, std::int64_t ranks, Shard shard = Shard::none) {
  knobs.ranks = {.count = ranks, .shard = shard, .bucket_bytes = 2048};
  if (shard >= Shard::gradients) knobs.alloc.with = Allocator::arena;
  return knobs;
}

struct Numbers {
  std::vector<float> losses;
  std::vector<float> weights;
  std::vector<float> gradients;  // of the last step; only the rank's part if gradients are sharded
};

Numbers numbers_of(const StepPlan& plan, std::uint64_t order, std::int64_t run = steps) {
  const StepResult result = make_reference_device(order)->load(plan)->run(
      {.wash_out_steps = 0, .steps = run, .tensors = true});
  const auto values_of = [&](const std::string& name) {
    const auto found = std::ranges::find(result.tensors, name, &Tensor::name);
    if (found != result.tensors.end()) return found->values;
    ADD_FAILURE() << "no tensor is called " << name;
    return std::vector<float>();
  };
  return {result.losses, values_of("weights"), values_of("gradients")};
}

Numbers numbers_of(const Knobs& knobs, std::uint64_t order = 1, std::int64_t run = steps) {
  return numbers_of(plan_of(knobs), order, run);
}

double largest_difference(const std::vector<float>& a, const std::vector<float>& b) {
  if (a.size() != b.size()) return INFINITY;
  double largest = 0;
  for (std::size_t i = 0; i < a.size(); ++i)
    largest = std::max(largest, std::abs(static_cast<double>(a[i]) - b[i]));
  return largest;
}

double mean_difference(const std::vector<float>& a, const std::vector<float>& b) {
  if (a.size() != b.size()) return INFINITY;
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += std::abs(static_cast<double>(a[i]) - b[i]);
  return sum / static_cast<double>(a.size());
}

// The largest effects of the order and rounding of sums over ranks, after ten steps. fp32 rounds at
// 6e-8 and bf16 at 4e-3, once for a rank's gradient and once for their mean. Measured effects are
// 2e-7 and 9e-4 for losses, and 1e-8 and 3e-6 on average for weights. AdamW makes a step of nearly
// the learning rate even for a tiny gradient, so single weights may differ more than the mean.
struct Bound {
  double loss = 0;
  double mean_weight = 0;
  double gradient = 0;  // of the first step, each element
};
constexpr Bound bound_of(DType dtype) {
  return dtype == DType::fp32 ? Bound{1e-6, 5e-8, 1e-7} : Bound{2e-3, 1e-5, 1e-2};
}

void expect_alike(const Numbers& found, const Numbers& expected, DType dtype) {
  const Bound bound = bound_of(dtype);
  EXPECT_LE(largest_difference(found.losses, expected.losses), bound.loss);
  EXPECT_LE(mean_difference(found.weights, expected.weights), bound.mean_weight);
}

// The part of all ranks' weights that rank 0 keeps.
std::vector<float> part_of_rank_0(const StepPlan& plan, const std::vector<float>& weights) {
  std::vector<float> part;
  const auto buffer = std::ranges::find(plan.buffers, "weights", &Buffer::name);
  for (const RankPiece& piece : buffer->pieces) {
    const auto first = weights.begin() + piece.first;
    part.insert(part.end(), first, first + piece.elements);
  }
  EXPECT_FALSE(part.empty());
  return part;
}

class RankNumbers : public testing::TestWithParam<DType> {};

TEST_P(RankNumbers, AreThoseOfOneRankWithAllBatches) {
  for (const std::int64_t ranks : {2, 4}) {
    const Numbers expected = numbers_of(alone(model_of(GetParam()), ranks));
    ASSERT_GT(expected.losses.size(), 0u);
    const Numbers found = numbers_of(of_ranks(model_of(GetParam()), ranks));
    expect_alike(found, expected, GetParam());
    for (const Shard shard : {Shard::optimizer, Shard::gradients}) {
      const Numbers sharded = numbers_of(of_ranks(model_of(GetParam()), ranks, shard));
      EXPECT_EQ(sharded.losses, found.losses) << ranks << ", " << static_cast<int>(shard);
      EXPECT_EQ(sharded.weights, found.weights) << ranks << ", " << static_cast<int>(shard);
    }
    const StepPlan plan = plan_of(of_ranks(model_of(GetParam()), ranks, Shard::parameters));
    const Numbers sharded = numbers_of(plan, 1);
    EXPECT_EQ(sharded.losses, found.losses);
    EXPECT_EQ(sharded.weights, part_of_rank_0(plan, found.weights));
    const Knobs sharing = of_ranks(model_of(GetParam()), ranks);
    EXPECT_LE(largest_difference(numbers_of(sharing, 1, 1).gradients,
                                 numbers_of(alone(model_of(GetParam()), ranks), 1, 1).gradients),
              bound_of(GetParam()).gradient);
  }
}

// A rank's tensors have the scales of a part of a batch, so that the first loss is the same. The
// roundings of gradients, which then differ in bf16, show in three times the differences of bf16.
TEST(RankNumbersInFp8, AreThoseOfOneRankWithAllBatches) {
  Knobs model = model_of(DType::bf16);
  model.model.fp8 = ModelFp8::current;
  for (const std::int64_t ranks : {2, 4}) {
    const Numbers expected = numbers_of(alone(model, ranks));
    const Numbers found = numbers_of(of_ranks(model, ranks));
    EXPECT_NEAR(found.losses.front(), expected.losses.front(), 1e-6);
    EXPECT_LE(largest_difference(found.losses, expected.losses), 1.5e-2);
    EXPECT_LE(mean_difference(found.weights, expected.weights), 3e-5);
    for (const Shard shard : {Shard::optimizer, Shard::gradients}) {
      const Numbers sharded = numbers_of(of_ranks(model, ranks, shard));
      EXPECT_EQ(sharded.losses, found.losses) << ranks << ", " << static_cast<int>(shard);
      EXPECT_EQ(sharded.weights, found.weights) << ranks << ", " << static_cast<int>(shard);
    }
    const StepPlan plan = plan_of(of_ranks(model, ranks, Shard::parameters));
    const Numbers sharded = numbers_of(plan, 1);
    EXPECT_EQ(sharded.losses, found.losses);
    EXPECT_EQ(sharded.weights, part_of_rank_0(plan, found.weights));
  }
}

TEST_P(RankNumbers, OfABatchInPartsToo) {
  Knobs parts = model_of(GetParam());
  parts.batch.size = 4;
  parts.batch.accumulate = 2;
  // One large batch has its parts in another order, which does not change their sum.
  const Numbers once = numbers_of(of_ranks(parts, 2));
  Knobs each = of_ranks(parts, 2);
  each.ranks.sync_each_part = true;
  expect_alike(numbers_of(each), once, GetParam());
  for (const Shard shard : {Shard::optimizer, Shard::gradients}) {
    const Numbers sharded = numbers_of(of_ranks(parts, 2, shard));
    EXPECT_EQ(sharded.losses, once.losses) << static_cast<int>(shard);
    EXPECT_EQ(sharded.weights, once.weights) << static_cast<int>(shard);
  }
  const StepPlan plan = plan_of(of_ranks(parts, 2, Shard::parameters));
  const Numbers sharded = numbers_of(plan, 1);
  EXPECT_EQ(sharded.losses, once.losses);
  EXPECT_EQ(sharded.weights, part_of_rank_0(plan, once.weights));
}

Knobs each_part_sharded(DType dtype, Shard shard) {
  Knobs parts = model_of(dtype);
  parts.batch.size = 6;
  parts.batch.accumulate = 3;
  Knobs knobs = of_ranks(parts, 2, shard);
  knobs.ranks.sync_each_part = true;
  return knobs;
}

// A rank adds up its part of every part's mean over ranks, where others reduce a sum of parts.
TEST_P(RankNumbers, OfPartsThatAreReducedIntoARanksPartToo) {
  Knobs whole = each_part_sharded(GetParam(), Shard::none);
  whole.ranks.sync_each_part = false;
  const Numbers once = numbers_of(whole);
  for (const ZeroGrad zero : {ZeroGrad::none, ZeroGrad::memset}) {
    Knobs gradients = each_part_sharded(GetParam(), Shard::gradients);
    gradients.memory.zero_grad = zero;
    const Numbers found = numbers_of(gradients);
    expect_alike(found, once, GetParam());
    Knobs parameters = each_part_sharded(GetParam(), Shard::parameters);
    parameters.memory.zero_grad = zero;
    parameters.ranks.communicators = 2;
    const StepPlan plan = plan_of(parameters);
    for (const std::uint64_t order : {1, 5}) {
      const Numbers sharded = numbers_of(plan, order);
      EXPECT_EQ(sharded.losses, found.losses);
      EXPECT_EQ(sharded.weights, part_of_rank_0(plan, found.weights));
    }
  }
  if (GetParam() != DType::bf16) return;
  Knobs wide = each_part_sharded(GetParam(), Shard::gradients);
  wide.ranks.gradient_dtype = GradientDtype::fp32;
  expect_alike(numbers_of(wide), once, GetParam());
}

// The host checks reduced gradients without changing them.
TEST_P(RankNumbers, AreTheSameWhereTheHostChecksEveryBucket) {
  for (const Shard shard : {Shard::none, Shard::optimizer, Shard::gradients, Shard::parameters}) {
    Knobs knobs = of_ranks(model_of(GetParam()), 2, shard);
    const Numbers unchecked = numbers_of(knobs);
    knobs.ranks.check_each_bucket = true;
    const Numbers checked = numbers_of(knobs);
    EXPECT_EQ(checked.losses, unchecked.losses);
    EXPECT_EQ(checked.weights, unchecked.weights);
  }
}

// bf16 gradients are rounded once where they are reduced, in fp32 or in bf16. So both agree with
// one rank equally well.
TEST(RankNumbersInFp32OnTheWire, AreThoseOfOneRankToo) {
  const Numbers expected = numbers_of(alone(model_of(DType::bf16), 2));
  for (const Shard shard : {Shard::none, Shard::optimizer, Shard::gradients}) {
    Knobs knobs = of_ranks(model_of(DType::bf16), 2, shard);
    knobs.ranks.gradient_dtype = GradientDtype::fp32;
    expect_alike(numbers_of(knobs), expected, DType::bf16);
  }
}

// Halving and quartering numbers is exact, but a third is not.
TEST_P(RankNumbers, AreThoseOfAMeanWhereEveryRankDividesBefore) {
  for (const Shard shard : {Shard::none, Shard::optimizer, Shard::gradients, Shard::parameters}) {
    for (const std::int64_t ranks : {2, 4}) {
      Knobs knobs = of_ranks(model_of(GetParam()), ranks, shard);
      const Numbers expected = numbers_of(knobs);
      knobs.ranks.average = Averaging::before;
      const Numbers found = numbers_of(knobs);
      EXPECT_EQ(found.losses, expected.losses);
      EXPECT_EQ(found.weights, expected.weights);
      // With Shard::optimizer, gradients outside of a rank's own part are unreduced and differ.
      if (shard != Shard::optimizer) {
        EXPECT_EQ(found.gradients, expected.gradients);
      }
    }
  }
  Knobs knobs = of_ranks(model_of(GetParam()), 3);
  const Numbers expected = numbers_of(knobs, 1, 1);
  knobs.ranks.average = Averaging::before;
  EXPECT_LE(largest_difference(numbers_of(knobs, 1, 1).gradients, expected.gradients),
            bound_of(GetParam()).gradient);
  expect_alike(numbers_of(knobs), numbers_of(of_ranks(model_of(GetParam()), 3)), GetParam());
}

// Tests every prefetch distance of gathers.
TEST_P(RankNumbers, DependOnNoGatherAhead) {
  Knobs knobs = of_ranks(model_of(GetParam()), 2, Shard::parameters);
  knobs.ranks.communicators = 2;
  const Numbers expected = numbers_of(knobs);
  for (const std::int64_t ahead : {0, 2, 5}) {
    knobs.ranks.gather_ahead = ahead;
    const Numbers found = numbers_of(knobs, 5);
    EXPECT_EQ(found.losses, expected.losses);
    EXPECT_EQ(found.weights, expected.weights);
  }
}

TEST_P(RankNumbers, AreTheSameInAGraph) {
  for (const Shard shard : {Shard::none, Shard::optimizer, Shard::gradients, Shard::parameters}) {
    Knobs knobs = of_ranks(model_of(GetParam()), 2, shard);
    const Numbers one_by_one = numbers_of(knobs);
    knobs.launch.via = LaunchVia::graph;
    for (const std::uint64_t order : {1, 5}) {
      const Numbers found = numbers_of(knobs, order);
      EXPECT_EQ(found.losses, one_by_one.losses);
      EXPECT_EQ(found.weights, one_by_one.weights);
    }
  }
}

// Where each rank has only its part of the gradients, their norm is a sum over ranks.
TEST_P(RankNumbers, AreClippedByTheNormOfAllGradients) {
  Knobs knobs = model_of(GetParam());
  knobs.optim.clip = 0.05;
  const Numbers free = numbers_of(of_ranks(model_of(GetParam()), 4));
  const Numbers found = numbers_of(of_ranks(knobs, 4));
  EXPECT_GT(mean_difference(found.weights, free.weights), bound_of(GetParam()).mean_weight);
  for (const Shard shard : {Shard::optimizer, Shard::gradients, Shard::parameters}) {
    Numbers sharded = numbers_of(of_ranks(knobs, 4, shard));
    if (shard == Shard::parameters) {
      // The losses were computed from these weights.
      EXPECT_LE(largest_difference(sharded.losses, found.losses), bound_of(GetParam()).loss);
    } else {
      expect_alike(sharded, found, GetParam());
    }
  }
}

// Tests all bucket sizes, orders and waits. Results are equal bit by bit, since a sum over ranks
// does not depend on the other contents of its bucket.
TEST_P(RankNumbers, DependOnNoBucket) {
  const Numbers expected = numbers_of(of_ranks(model_of(GetParam()), 2));
  std::vector<Knobs> others(4, of_ranks(model_of(GetParam()), 2));
  others[0].ranks.bucket_bytes = 0;
  others[1].ranks.bucket_order = BucketOrder::forward;
  others[2].ranks.overlap = ReduceOverlap::none;
  others[3].ranks.overlap = ReduceOverlap::early_wait;
  for (const Knobs& other : others) {
    const Numbers found = numbers_of(other, 7);
    EXPECT_EQ(found.losses, expected.losses);
    EXPECT_EQ(found.weights, expected.weights);
  }
}

TEST_P(RankNumbers, AreTheSameInEveryOrder) {
  for (const Shard shard : {Shard::none, Shard::optimizer, Shard::gradients, Shard::parameters}) {
    Knobs knobs = of_ranks(model_of(GetParam()), 4, shard);
    if (shard == Shard::parameters) knobs.ranks.communicators = 2;
    const StepPlan plan = plan_of(knobs);
    const Numbers expected = numbers_of(plan, 1, 4);
    for (std::uint64_t order = 2; order < 8; ++order) {
      const Numbers found = numbers_of(plan, order, 4);
      EXPECT_EQ(found.losses, expected.losses) << order;
      EXPECT_EQ(found.weights, expected.weights) << order;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Every, RankNumbers, testing::Values(DType::fp32, DType::bf16),
                         [](const auto& dtype) {
                           return dtype.param == DType::fp32 ? "fp32" : "bf16";
                         });

StepPlan with_reduction(StepPlan plan, Reduction reduction) {
  for (Operation& operation : plan.operations) {
    auto* collective = std::get_if<Collective>(&operation.action);
    if (collective && operation.phase == Phase::backward) collective->reduction = reduction;
  }
  return plan;
}

StepPlan without(StepPlan plan, const std::string& operation) {
  const auto removed =
      std::erase_if(plan.operations, [&](const Operation& one) { return one.name == operation; });
  EXPECT_GT(removed, 0) << operation;
  return plan;
}

// AdamW makes nearly the same update, so losses and weights hardly show the fault.
TEST(RankFaults, ASumForAMeanShowsInTheGradients) {
  const Knobs knobs = model_of(DType::fp32);
  const StepPlan plan = plan_of(of_ranks(knobs, 4));
  const Numbers expected = numbers_of(alone(knobs, 4), 1, 1);
  const double bound = bound_of(DType::fp32).gradient;
  EXPECT_LE(largest_difference(numbers_of(plan, 1, 1).gradients, expected.gradients), bound);
  const Numbers found = numbers_of(with_reduction(plan, Reduction::sum), 1, 1);
  EXPECT_GT(largest_difference(found.gradients, expected.gradients), 100 * bound);
}

TEST(RankFaults, ADivisionThatIsLeftOutShowsInTheGradients) {
  Knobs knobs = of_ranks(model_of(DType::fp32), 4);
  const Numbers expected = numbers_of(knobs, 1, 1);
  knobs.ranks.average = Averaging::before;
  const Numbers found = numbers_of(without(plan_of(knobs), "divide bucket 0 by the ranks"), 1, 1);
  EXPECT_GT(largest_difference(found.gradients, expected.gradients),
            100 * bound_of(DType::fp32).gradient);
}

TEST(RankFaults, APartThatIsLeftOutOfTheSumShowsInTheGradients) {
  const StepPlan plan = plan_of(each_part_sharded(DType::fp32, Shard::gradients));
  const std::vector<float> expected = numbers_of(plan, 1, 1).gradients;
  for (const char* const fault :
       {"add bucket 0 to the sum", "reduce bucket 0", "wait for bucket 0"}) {
    double largest = 0;
    for (std::uint64_t order = 1; order <= 5; ++order) {
      const auto found = numbers_of(without(plan, fault), order, 1).gradients;
      largest = std::max(largest, largest_difference(found, expected));
    }
    EXPECT_GT(largest, 100 * bound_of(DType::fp32).gradient) << fault;
  }
}

TEST(RankFaults, AReductionThatIsLeftOutEndsInOtherWeights) {
  const StepPlan plan = without(plan_of(of_ranks(model_of(DType::fp32), 2)), "reduce bucket 0");
  try {
    (void)numbers_of(plan, 1, 2);
    FAIL() << "ranks that do not reduce all gradients have the same weights";
  } catch (const DeviceError& error) {
    EXPECT_STREQ(error.what(), "the 'weights' of rank 1 are not those of rank 0");
  }
}

TEST(RankFaults, AMissingWaitShowsInSomeOrder) {
  const StepPlan plan =
      without(plan_of(of_ranks(model_of(DType::fp32), 2)), "wait until the gradients are reduced");
  int seen = 0;
  for (std::uint64_t order = 1; order <= 20; ++order) {
    try {
      (void)numbers_of(plan, order, 3);
    } catch (const DeviceError&) {
      ++seen;
    }
  }
  EXPECT_GT(seen, 0);
}

}  // namespace
}  // namespace stepgate
