// SPDX-License-Identifier: MIT
// Tests that temporary gradients have the same numbers as persistent ones: losses, weights and read
// gradients, with every allocator. runner/plan/compose/own_gradients_test.cpp tests them without
// numbers.
#include <gtest/gtest.h>

#include <algorithm>

#include "device/gradients.h"
#include "device/reference/reference_device.h"
#include "tests/contract/device_contract.h"

namespace stepgate {
namespace {

constexpr std::uint64_t order_seed = 7;

Knobs kept(const char* model) {
  Knobs knobs = model_knobs(model);
  knobs.optim.impl = OptimImpl::per_tensor;
  return knobs;
}

Knobs given_back(Knobs knobs, Allocator with) {
  knobs.alloc.with = with;
  knobs.alloc.when = AllocWhen::op;
  return knobs;
}

bool has_own_gradients(const StepPlan& plan) {
  return std::ranges::any_of(plan.buffers, [](const Buffer& buffer) {
    return buffer.purpose == Purpose::gradients && buffer.allocated_by != AllocatedBy::the_plan;
  });
}

StepResult run(LoadedStep& step) {
  return step.run({.steps = 4, .tensors = true, .gradients = true});
}

void expect_same(const StepResult& got, const StepResult& expected) {
  EXPECT_EQ(got.losses, expected.losses);
  ASSERT_FALSE(got.tensors.empty());
  EXPECT_EQ(got.tensors[0].values, expected.tensors[0].values);
  ASSERT_EQ(got.gradients.size(), expected.gradients.size());
  for (std::size_t index = 0; index < got.gradients.size(); ++index) {
    EXPECT_EQ(got.gradients[index].elements, expected.gradients[index].elements);
    EXPECT_EQ(got.gradients[index].projections, expected.gradients[index].projections);
  }
}

TEST(OwnGradientNumbers, AreThoseOfGradientsThatStay) {
  for (const char* model : {"fp32_sgd", "fp32_adamw", "bf16_adamw", "fp32_transformer",
                            "fp32_packed_transformer", "fp32_recommender", "bf16_recommender"}) {
    for (const std::int64_t accumulate : {1, 2}) {
      Knobs knobs = kept(model);
      const bool has_parts = knobs.model.kind == ModelKind::transformer;
      if (accumulate > 1 && !has_parts) continue;
      if (accumulate > 1 && !knobs.batch.lengths.empty()) continue;
      knobs.batch.accumulate = accumulate;
      const auto device = make_reference_device(order_seed);
      const StepResult expected = run(*device->load(plan_of(knobs)));
      for (const Allocator with : {Allocator::cuda, Allocator::cuda_async, Allocator::caching,
                                   Allocator::expandable, Allocator::first_fit}) {
        SCOPED_TRACE(std::string(model) + " " + std::to_string(static_cast<int>(with)));
        const StepPlan plan = plan_of(given_back(knobs, with));
        ASSERT_TRUE(has_own_gradients(plan));
        const auto step = device->load(plan);
        expect_same(run(*step), expected);
        ASSERT_TRUE(step->restart()) << "in place";
        expect_same(run(*step), expected);
      }
    }
  }
}

TEST(OwnGradientNumbers, AreThoseOfTheTurnWhereBatchesHaveSizes) {
  Knobs knobs = kept("fp32_adamw");
  knobs.batch.sizes = {4, 2, 3};
  const auto device = make_reference_device(order_seed);
  const StepResult expected = run(*device->load(plan_of(knobs)));
  expect_same(run(*device->load(plan_of(given_back(knobs, Allocator::caching)))), expected);
}

// A gradient is overwritten if it is released before its update, or allocated after it was written.
TEST(OwnGradientNumbers, ChangeWhereTheMemoryGoesTooEarlyOrComesTooLate) {
  const StepPlan plan = plan_of(given_back(kept("fp32_sgd"), Allocator::caching));
  const auto device = make_reference_device(order_seed);
  const std::vector<float> expected = device->load(plan)->run({.steps = 4}).losses;
  const auto moved = [&](const std::string& what, const std::string& before) {
    StepPlan wrong = plan;
    const auto at = [&](const std::string& name) {
      return std::ranges::find(wrong.operations, name, &Operation::name);
    };
    const Operation operation = *at(what);
    wrong.operations.erase(at(what));
    wrong.operations.insert(at(before), operation);
    return device->load(wrong)->run({.steps = 4}).losses;
  };
  EXPECT_EQ(moved("release gradient of layer 0 bias", "release gradient of layer 0 weight"),
            expected);
  EXPECT_NE(moved("release gradient of layer 0 weight", "layer 0: update the weight"), expected);
}

}  // namespace
}  // namespace stepgate
