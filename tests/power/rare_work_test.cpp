// SPDX-License-Identifier: MIT
// Tests periodic work that is rarer than some segments and more frequent than others: it is
// measured at its full cost, or the assertion reports that it was not and never passes without it.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>

#include "base/stats/quantile.h"
#include "device/simulated/simulated_device.h"
#include "plan/compose/build_step_plan.h"
#include "plan/count/facts_of.h"
#include "scenario/read/read_scenario.h"
#include "tests/contract/judged_on_device.h"
#include "tests/round_numbers.h"

namespace stepgate {
namespace {

constexpr int seeds = 8;

// `fix` evaluates `batches` batches every `every` steps, with a forward pass each.
Scenario evaluating(std::int64_t every, std::int64_t batches) {
  return parse_scenario(
      fmt::format("claim = \"evaluation is free\"\n"
                  "model = {{ kind = \"mlp\", layers = 8, hidden = 512 }}\nbatch.size = 64\n"
                  "[variant.baseline]\n"
                  "[variant.fix]\neval = {{ every = {}, batches = {} }}\n"
                  "[expect]\nfree = \"fix.step_ms_mean <= 1.005 * baseline.step_ms_mean\"\n",
                  every, batches),
      "evaluating.toml");
}

AssertionVerdict judged(const Scenario& scenario, std::uint64_t seed) {
  const std::vector<PlannedStep> plans = with_facts(build_step_plans(scenario, seed));
  const auto device = make_simulated_device(profile_of_round_numbers(usual_noise), {.seed = seed});
  return judged_on(*device, scenario, plans, seed).assertions.front();
}

// Returns fix / baseline over this number of steps, in whole periods of all work, without effects
// of loads.
double true_ratio(const Scenario& scenario, std::int64_t steps = 21'000) {
  const auto device = make_simulated_device(
      profile_of_round_numbers({.within_rounds = usual_noise.within_rounds}), {.seed = 1});
  std::vector<double> times;
  const std::vector<StepPlan> plans = build_step_plans(scenario, 1);
  for (const StepPlan& plan : plans) {
    const StepResult result = device->load(plan)->run({.wash_out_steps = 50, .steps = steps});
    times.push_back(static_cast<double>(result.elapsed->count()));
  }
  return times[1] / times[0];
}

class RareWork : public testing::TestWithParam<std::int64_t> {};

TEST_P(RareWork, IsMeasuredAtItsPriceOrLeavesTheAssertionUndecided) {
  const std::int64_t every = GetParam();
  const Scenario scenario = evaluating(every, std::min<std::int64_t>((every + 9) / 10, 64));
  const double truth = true_ratio(scenario);
  ASSERT_GT(truth, 1.01);
  std::vector<double> measured;
  for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
    const AssertionVerdict verdict = judged(scenario, seed);
    SCOPED_TRACE(fmt::format("seed {}, {:.4f} in truth: {}", seed, truth, verdict.reason));
    EXPECT_NE(verdict.outcome, Outcome::passes);
    if (verdict.outcome == Outcome::undecided) {
      EXPECT_NE(verdict.reason.find(fmt::format("happens every {} steps", every)),
                std::string::npos);
    } else {
      ASSERT_TRUE(verdict.estimate);
      measured.push_back(verdict.estimate->value);
    }
  }
  ASSERT_TRUE(measured.empty() || measured.size() == seeds);
  if (!measured.empty()) {
    EXPECT_NEAR(quantile(measured, 0.5), truth, 0.003 * truth);
  }
}

// The loader's workers of `fix` restart every `every` steps, which costs time.
Scenario restarting(std::int64_t every, double limit) {
  return parse_scenario(
      fmt::format("claim = \"starting anew is free\"\n"
                  "model = {{ kind = \"spin\", kernels = 3, kernel_us = 300 }}\n"
                  "batch = {{ size = 64, sample_bytes = \"4 KiB\" }}\n"
                  "loader = {{ wait_us = 100, depth = 2 }}\n"
                  "[variant.baseline]\n"
                  "[variant.fix]\nloader = {{ restart_every = {}, start_us = {} }}\n"
                  "[expect]\nfree = \"fix.samples_per_s >= {} * baseline.samples_per_s\"\n",
                  every, 300 * every, limit),
      "restarting.toml");
}

// Rare work that is not an operation is measured or doubted too; where the budget allows whole
// periods, the verdict is right.
TEST(RareWork, OfALoadersWorkersIsDecidedRightlyUpToFourHundredStepsAndNeverWrongly) {
  for (const std::int64_t every : {37, 130, 400, 1500, 5000}) {
    const double truth = 1 / true_ratio(restarting(every, 1), 20 * every);
    ASSERT_LT(truth, 0.95);
    for (const auto& [limit, right] :
         {std::pair((1 + truth) / 2, Outcome::fails), std::pair(0.97 * truth, Outcome::passes)}) {
      for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
        const AssertionVerdict verdict = judged(restarting(every, limit), seed);
        EXPECT_EQ(verdict.outcome, every <= 400 ? right : Outcome::undecided) << fmt::format(
            "every {} steps, seed {}, {:.3f} in truth: {}", every, seed, truth, verdict.reason);
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Every, RareWork, testing::Values(2, 10, 55, 90, 140, 200, 300, 700, 1500),
                         testing::PrintToStringParamName());

}  // namespace
}  // namespace stepgate
