// SPDX-License-Identifier: MIT
#include "compare/worker/count_step.h"

#include <gtest/gtest.h>

#include "measure/rounds/same_step.h"
#include "measure/testing/fake_device.h"
#include "plan/testing/plan_by_hand.h"

namespace stepgate {
namespace {

class TracingDevice : public FakeDevice {
 public:
  using FakeDevice::FakeDevice;
  std::string reason_against_tracing() const override { return ""; }
};

// Work happens in every 7th and every 50th step. Both coincide after 350 steps, which is longer
// than any trace.
PlannedStep step_of_two_periods() {
  StepPlan plan = plans_named({"fix"}).front();
  for (const std::int64_t every : {7, 50})
    plan.operations.push_back({.name = "wait", .action = HostWaits{}, .every = every});
  return with_facts(plan);
}

TEST(CountStep, TracesOnceWhatHappensRarelyHasHappened) {
  Script script{.step_time = [](const std::string&, std::int64_t) {
    return std::chrono::nanoseconds(std::chrono::milliseconds(5));
  }};
  TracingDevice device(script);
  const PlannedStep step = step_of_two_periods();
  const StepCounts counts = counts_of(device, step, step, {});
  EXPECT_EQ(counts.losses.size(), 4U);
  EXPECT_EQ(counts.untraced, "the device recorded no trace");
  ASSERT_EQ(script.runs.size(), 3U);  // two for losses and one traced
  const Observe& traced = script.runs.back().second;
  EXPECT_TRUE(traced.trace);
  EXPECT_EQ(traced.steps, 7);
  EXPECT_GE(traced.wash_out_steps, 7);
}

// Where the device measures time, the worker runs some steps and then repeats the first steps.
TEST(CountStep, BeginsAgainToSeeWhetherTheStepIsStillTheSame) {
  StepPlan plan = plans_named({"fix"}).front();
  plan.parameters = {{"weight", 0, 100}};
  const PlannedStep step = with_facts(plan);
  for (const bool timed : {true, false}) {
    Script script;
    if (timed) {
      script.step_time = [](const std::string&, std::int64_t) {
        return std::chrono::nanoseconds(std::chrono::milliseconds(1));
      };
    }
    int asked = 0;
    script.gradients = [&](const std::string&, std::int64_t) {
      std::vector<GradientSketch> sketches(1);
      const std::vector<float> values(100, asked++ == 0 ? 1.0F : 1.5F);
      add_part({.elements = 100}, values.data(), DType::fp32, sketches[0]);
      return sketches;
    };
    FakeDevice device(script);
    const StepCounts counts = counts_of(device, step, step, {});
    EXPECT_EQ(counts.gradients.at("weight").elements, 100);
    EXPECT_EQ(script.runs.size(), timed ? 4U : 2U);
    ASSERT_EQ(counts.begun_again.contains("weight"), timed);
    if (timed) {
      EXPECT_GT(counts.begun_again.at("weight"), 0.2);
    }
  }
}

// Another build must compute the same bits, unless cuDNN's attention adds in any order.
TEST(CountStep, AllowsLossesToDifferByRoundingWhereSumsHaveAnyOrder) {
  for (const AttentionSums sums : {AttentionSums::fixed, AttentionSums::any}) {
    Knobs knobs = small_transformer();
    knobs.launch.attention_sums = sums;
    const PlannedStep step = with_facts(plan_of(knobs));
    Script script;
    FakeDevice device(script);
    const StepCounts counts = counts_of(device, step, step, {});
    EXPECT_EQ(counts.losses.size(), 4U);
    EXPECT_EQ(counts.loss_bound, sums == AttentionSums::any ? loss_bound({DType::bf16}, 0) : 0);
  }
}

}  // namespace
}  // namespace stepgate
