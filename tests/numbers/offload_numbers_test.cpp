// SPDX-License-Identifier: MIT
// What goes to the host and comes back is what was there: steps that offload compute, in whichever
// order their plan permits, what they compute without. Without numbers: offload_test.cpp of plans.
#include <gtest/gtest.h>

#include <random>

#include "device/reference/reference_device.h"
#include "tests/contract/device_contract.h"

namespace stepgate {
namespace {

constexpr OffloadVia ways[] = {OffloadVia::pinned_overlap, OffloadVia::pinned,
                               OffloadVia::pageable};

Knobs with_layers(std::int64_t layers) {
  Knobs knobs = model_knobs("fp32_adamw");
  knobs.model.layers = layers;
  knobs.optim.impl = OptimImpl::per_tensor;
  knobs.alloc.with = Allocator::arena;
  return knobs;
}

std::vector<float> losses_of(const StepPlan& plan, std::uint64_t order_seed) {
  return make_reference_device(order_seed)->load(plan)->run({.steps = 4}).losses;
}

TEST(OffloadNumbers, AreThoseOfAStepThatKeepsEverythingOnTheDevice) {
  const std::uint64_t seed = std::random_device{}();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  for (const std::int64_t layers : {1, 2, 3, 5, 8}) {
    const std::vector<float> expected = losses_of(plan_of(with_layers(layers)), seed);
    for (const Offload what : {Offload::activations, Offload::optimizer}) {
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

TEST(OffloadNumbers, AreWrongInSomeOrderWithoutTheWaits) {
  const std::uint64_t seed = std::random_device{}();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  for (const Offload what : {Offload::activations, Offload::optimizer}) {
    Knobs knobs = with_layers(5);
    knobs.memory = {.offload = what, .offload_via = OffloadVia::pinned_overlap};
    knobs.alloc = {};  // labels that something else overwrites would be no classes
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
