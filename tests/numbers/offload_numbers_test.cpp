// SPDX-License-Identifier: MIT
// Tests that offloaded data comes back unchanged: steps with offloading compute the same as
// without, in every order that the plan permits. offload_test.cpp of plan/ tests offloading without
// numbers.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "device/reference/reference_device.h"
#include "tests/contract/device_contract.h"

namespace stepgate {
namespace {

constexpr OffloadVia ways[] = {OffloadVia::pinned_overlap, OffloadVia::pinned,
                               OffloadVia::pageable};

constexpr Offload everything[] = {Offload::activations, Offload::optimizer, Offload::weights};
constexpr int steps = 12;

Knobs with_layers(std::int64_t layers, const char* model = "fp32_adamw") {
  Knobs knobs = model_knobs(model);
  knobs.model.layers = layers;
  knobs.optim.impl = OptimImpl::per_tensor;
  knobs.alloc.with = Allocator::arena;
  return knobs;
}

std::vector<float> losses_of(const StepPlan& plan, std::uint64_t order_seed) {
  return make_reference_device(order_seed)->load(plan)->run({.steps = steps}).losses;
}

std::vector<float> trained_weights(const StepPlan& plan, std::uint64_t order_seed) {
  const auto step = make_reference_device(order_seed)->load(plan);
  return step->run({.steps = steps, .tensors = true}).tensors.at(0).values;
}

TEST(OffloadNumbers, AreThoseOfAStepThatKeepsEverythingOnTheDevice) {
  const std::uint64_t seed = std::random_device{}();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  for (const std::int64_t layers : {1, 2, 3, 5, 8}) {
    const std::vector<float> expected = losses_of(plan_of(with_layers(layers)), seed);
    for (const Offload what : everything) {
      for (const OffloadVia via : ways) {
        Knobs knobs = with_layers(layers);
        knobs.memory = {.offload = what, .offload_via = via};
        const StepPlan plan = plan_of(knobs);
        for (std::uint64_t order = 0; order < 10; ++order)
          ASSERT_EQ(losses_of(plan, seed + order), expected) << layers << " layers";
      }
    }
  }
}

// The stream that copies back waits until the kernels have read what it releases.
TEST(OffloadNumbers, AreTheSameInMemoryOfTheStreamThatWrites) {
  Knobs knobs = with_layers(5);
  const std::vector<float> expected = losses_of(plan_of(knobs), 1);
  knobs.memory.offload = Offload::activations;
  knobs.alloc = {.with = Allocator::caching, .when = AllocWhen::op, .stream = AllocStream::writer};
  const StepPlan plan = plan_of(knobs);
  EXPECT_TRUE(std::ranges::any_of(plan.operations, [](const Operation& operation) {
    return operation.name.starts_with("wait until activation coming back");
  }));
  for (std::uint64_t order = 0; order < 10; ++order) ASSERT_EQ(losses_of(plan, order), expected);
}

// Tests every optimizer rule, also in 16 bits, and with alternating batch sizes.
TEST(OffloadNumbers, LeaveTheWeightsThatTrainingOnTheDeviceLeaves) {
  const std::uint64_t seed = std::random_device{}();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  for (const char* model : {"fp32_sgd", "fp32_adamw", "fp32_lion", "fp32_momentum", "bf16_adamw"}) {
    for (const auto& [with, sizes] : {std::pair(Allocator::fixed, std::vector<std::int64_t>{}),
                                      {Allocator::arena, {}},
                                      {Allocator::arena, {4, 2, 3}}}) {
      Knobs knobs = with_layers(5, model);
      knobs.alloc.with = with;
      knobs.batch.sizes = sizes;
      const std::vector<float> expected = trained_weights(plan_of(knobs), seed);
      for (const OffloadVia via : ways) {
        knobs.memory = {.offload = Offload::weights, .offload_via = via};
        const StepPlan plan = plan_of(knobs);
        for (std::uint64_t order = 0; order < 10; ++order)
          ASSERT_EQ(trained_weights(plan, seed + order), expected) << model;
      }
    }
  }
}

// Each kind of wait is removed alone.
TEST(OffloadNumbers, OfWeightsAreWrongInSomeOrderWithoutTheWaitsOfAnyOneKind) {
  const std::uint64_t seed = std::random_device{}();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  Knobs knobs = with_layers(5);
  knobs.memory = {.offload = Offload::weights};
  knobs.alloc = {};
  const StepPlan good = plan_of(knobs);
  for (const char* kind : {"wait: the step begins", "wait for layer", "wait: read", "wait: updated",
                           "wait: has left", "wait until all layers are on the host"}) {
    StepPlan bad = good;
    ASSERT_GT(std::erase_if(bad.operations,
                            [kind](const Operation& operation) {
                              return std::holds_alternative<StreamWaitsEvent>(operation.action) &&
                                     operation.name.starts_with(kind);
                            }),
              0u);
    int wrong = 0;
    for (std::uint64_t order = 0; order < 40; ++order)
      wrong += losses_of(bad, seed + order) != losses_of(good, seed) ? 1 : 0;
    EXPECT_GT(wrong, 0) << kind;
  }
}

TEST(OffloadNumbers, AreWrongInSomeOrderWithoutTheWaits) {
  const std::uint64_t seed = std::random_device{}();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  for (const Offload what : everything) {
    Knobs knobs = with_layers(5);
    knobs.memory = {.offload = what, .offload_via = OffloadVia::pinned_overlap};
    knobs.alloc = {};  // overwritten labels would not be valid classes
    const StepPlan good = plan_of(knobs);
    StepPlan bad = good;
    std::erase_if(bad.operations, [](const Operation& operation) {
      return std::holds_alternative<StreamWaitsEvent>(operation.action);
    });
    int wrong = 0;
    for (std::uint64_t order = 0; order < 40; ++order)
      wrong += losses_of(bad, seed + order) != losses_of(good, seed) ? 1 : 0;
    EXPECT_GT(wrong, 0);
  }
}

}  // namespace
}  // namespace stepgate
