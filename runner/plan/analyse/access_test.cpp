// SPDX-License-Identifier: MIT
// Tests that operands of a launch must match the declaration of the kernel. For the whole suite,
// every operand that is cut, moved or left out is refused.
#include "plan/analyse/access.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "kernels/catalogue.h"
#include "kernels/kernels.h"
#include "plan/analyse/find_races.h"
#include "plan/compose/build_step_plan.h"
#include "plan/compose/step_builder.h"
#include "plan/testing/plan_by_hand.h"
#include "scenario/read/read_scenario.h"

namespace stepgate {
namespace {

template <class Visit>
void for_each_launch_of_the_suite(Visit visit) {
  for (const auto& entry : std::filesystem::directory_iterator(STEPGATE_SOURCE_DIR "/scenarios")) {
    if (entry.path().extension() != ".toml") continue;
    for (const StepPlan& plan : build_step_plans(read_scenario(entry.path()), 1)) {
      for (const Operation& operation : plan.operations) {
        if (const auto* launch = std::get_if<LaunchKernel>(&operation.action)) visit(*launch);
      }
    }
  }
}

TEST(FaultOfALaunch, IsFoundInEveryOperandThatIsCutOrGrown) {
  int operands = 0;
  for_each_launch_of_the_suite([&](const LaunchKernel& launch) {
    ASSERT_FALSE(fault_of(launch)) << launch.kernel.name();
    for (std::size_t index = 0; index < launch.operands.size(); ++index) {
      for (const std::int64_t difference : {-4, 4}) {
        LaunchKernel wrong = launch;
        wrong.operands[index].bytes += difference;
        ASSERT_TRUE(fault_of(wrong)) << launch.kernel.name() << " operand " << index;
      }
      ++operands;
    }
    LaunchKernel fewer = launch;
    fewer.operands.pop_back();
    ASSERT_TRUE(fault_of(fewer)) << launch.kernel.name();
  });
  EXPECT_GT(operands, 50'000);
}

// No kernel may write half over another operand; it may write in its place only where declared.
TEST(FaultOfALaunch, IsFoundWhereAResultLiesOverAnInput) {
  int results = 0, in_place = 0;
  for_each_launch_of_the_suite([&](const LaunchKernel& launch) {
    const auto declared = kernel(launch.kernel).operands;
    for (std::size_t output = 0; output < declared.size(); ++output) {
      if (declared[output].access == Access::read) continue;
      for (std::size_t input = 0; input < declared.size(); ++input) {
        if (input == output) continue;
        if (launch.operands[output].bytes == 0 || launch.operands[input].bytes == 0)
          continue;  // an empty operand lies over nothing
        LaunchKernel over = launch;
        over.operands[output].buffer = over.operands[input].buffer;
        over.operands[output].offset_bytes = over.operands[input].offset_bytes;
        const bool may =
            declared[output].may_replace == input || declared[input].may_replace == output;
        if (may && over.operands[output].bytes == over.operands[input].bytes) {
          ++in_place;
          continue;
        }
        ASSERT_TRUE(fault_of(over))
            << launch.kernel.name() << " operands " << output << ", " << input;
        ++results;
      }
    }
  });
  EXPECT_GT(results, 20'000);
  EXPECT_GT(in_place, 1'000);
}

TEST(FaultOfALaunchDeathTest, EndsWhateverLooksAtThePlan) {
  StepPlan plan = plan_of(small_mlp());
  for (Operation& operation : plan.operations) {
    if (auto* launch = std::get_if<LaunchKernel>(&operation.action)) launch->operands[0].bytes = 4;
  }
  EXPECT_DEATH(static_cast<void>(find_race(plan)), "an operand is as large as its kernel declares");
}

TEST(StepBuilderDeathTest, LaunchesNothingThatIsTooSmall) {
  StepPlan plan;
  StepBuilder builder(plan);
  const int x = builder.add({.name = "x", .bytes = 32 * 4});
  const int sum = builder.add({.name = "sum", .bytes = 32 * 4});
  const MatrixShape shape{.columns = 32};
  builder.launch<kernels::Add>("fits", shape,
                               {builder.whole(x), builder.whole(x), builder.whole(sum)});
  using Operand = StepBuilder::Operand;
  builder.launch<kernels::Add>("half", {.columns = 16},
                               {Operand::from(x, 16), Operand::from(x, 0), Operand::from(sum, 16)});
  EXPECT_EQ(std::get<LaunchKernel>(plan.operations[1].action).operands[0].offset_bytes, 64);
  EXPECT_DEATH(builder.launch<kernels::Add>(
                   "beyond", shape, {builder.whole(x), Operand::from(x, 1), builder.whole(sum)}),
               "an operand lies in its buffer");
  EXPECT_DEATH(
      builder.launch<kernels::Add>("too many", {.columns = 31},
                                   {builder.whole(x), builder.whole(x), builder.whole(sum)}),
      "an operand is as large as its kernel declares");
  EXPECT_DEATH(
      builder.launch<kernels::Add>("too few", shape, {builder.whole(x), builder.whole(sum)}),
      "a launch has its kernel's operands");
}

}  // namespace
}  // namespace stepgate
