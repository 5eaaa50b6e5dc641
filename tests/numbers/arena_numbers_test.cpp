// SPDX-License-Identifier: MIT
// Tests that steps with buffers in a shared arena compute the same as with separate buffers, in
// every order that the plan permits, so that no lifetime is too short. lifetimes_test.cpp tests
// lifetimes without numbers.
#include <gtest/gtest.h>

#include "device/reference/reference_device.h"
#include "plan/allocate/pack_arena.h"
#include "plan/analyse/find_races.h"
#include "plan/analyse/lifetimes.h"
#include "tests/contract/device_contract.h"

namespace stepgate {
namespace {

std::vector<float> losses_of(const StepPlan& plan, std::uint64_t order_seed) {
  const auto device = make_reference_device(order_seed);
  return device->load(plan)->run({.steps = 5}).losses;
}

class ArenaNumbers : public testing::TestWithParam<ModelCase> {};

TEST_P(ArenaNumbers, AreThoseOfBuffersOfTheirOwn) {
  constexpr std::uint64_t seed = 20260407;
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  // With separate buffers, every variation gives these losses too (test
  // ComputesTheSameLossesInEveryWayThatPlansAccept).
  const std::vector<float> expected = losses_of(plan_of(GetParam().knobs), seed);
  int planned = 0;
  int smaller = 0;
  for (const Knobs& knobs : ways_to_run(GetParam().knobs, seed)) {
    const auto plan = accepted_plan(knobs);
    if (!plan) continue;
    if (++planned % one_way_in != 0) continue;
    const StepPlan packed = in_arena(*plan);
    const auto order_seed = static_cast<std::uint64_t>(planned);
    ASSERT_EQ(find_race(packed), std::nullopt) << describe(knobs);
    ASSERT_EQ(losses_of(packed, order_seed), expected) << describe(knobs);
    std::int64_t moved = 0;  // bytes of buffers that now share memory
    for (std::size_t index = 0; index < plan->buffers.size(); ++index)
      moved += packed.buffers[index].bytes == 0 ? in_blocks(plan->buffers[index].bytes) : 0;
    if (packed.buffers.back().bytes < moved) ++smaller;
  }
  EXPECT_GT(planned, 50);
  if (GetParam().knobs.model.kind == ModelKind::mlp) {
    EXPECT_GT(smaller, planned / one_way_in / 4);
  }
}

INSTANTIATE_TEST_SUITE_P(EveryModel, ArenaNumbers, testing::ValuesIn(model_cases()),
                         [](const auto& test) { return test.param.name; });

}  // namespace
}  // namespace stepgate
