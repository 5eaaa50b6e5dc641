// SPDX-License-Identifier: MIT
// Tests that the loader's random draws are drawn anew in every round. A variant with random batch
// times is as fast as one with constant times of the same mean, and intervals have their promised
// coverage. A device that replays its first draws is detected.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdio>

#include "device/simulated/simulated_device.h"
#include "plan/compose/build_step_plan.h"
#include "plan/count/facts_of.h"
#include "scenario/read/read_scenario.h"
#include "tests/contract/judged_on_device.h"
#include "tests/round_numbers.h"

namespace stepgate {
namespace {

constexpr int gates = 120;
constexpr double confidence = 0.95;  // of the intervals

// Both variants wait for the loader; a batch takes 150 us on average in both.
Scenario jittering() {
  return parse_scenario(
      "claim = \"a loader's jitter costs nothing on average\"\n"
      "model = { kind = \"spin\", kernels = 3, kernel_us = 40 }\n"
      "loader = { wait_us = 150 }\nmeasure = { rounds = 60 }\n"
      "[variant.baseline]\n"
      "[variant.fix]\nloader.jitter = 0.45\n"
      "[expect]\n"
      "same = \"fix.step_ms_mean ~= baseline.step_ms_mean within 1.5%\"\n"
      "tie = \"fix.step_ms_mean <= 1 * baseline.step_ms_mean\"\n",
      "jittering.toml");
}

// A device whose loads all repeat the draws of the first load.
class Replaying : public Device {
 public:
  explicit Replaying(std::unique_ptr<Device> device) : device_(std::move(device)) {}

  DeviceIdentity identity() const override { return device_->identity(); }
  std::chrono::nanoseconds now() const override { return device_->now(); }
  std::unique_ptr<LoadedStep> load(const StepPlan& plan, const LoadDraw& draw) override {
    return device_->load(plan, replayed(draw));
  }
  std::unique_ptr<LoadedStep> load_into(int slot, const StepPlan& plan,
                                        const LoadDraw& draw) override {
    return device_->load_into(slot, plan, replayed(draw));
  }

 private:
  LoadDraw replayed(const LoadDraw& draw) {
    if (!first_) first_ = draw;
    return *first_;
  }

  std::unique_ptr<Device> device_;
  std::optional<LoadDraw> first_;
};

struct Seen {
  int covered = 0;  // intervals that contain 1
  int same_failed = 0;
  int tie_failed = 0;
  int tie_held = 0;
};

Seen seen_on(bool replaying) {
  const Scenario scenario = jittering();
  const std::vector<PlannedStep> plans = with_facts(build_step_plans(scenario, 1));
  Seen seen;
  for (std::uint64_t seed = 1; seed <= gates; ++seed) {
    std::unique_ptr<Device> device =
        make_simulated_device(profile_of_round_numbers(usual_noise), {.seed = seed});
    if (replaying) device = std::make_unique<Replaying>(std::move(device));
    const Verdict verdict = judged_on(*device, scenario, plans, seed);
    const AssertionVerdict& same = verdict.assertions.at(0);
    const AssertionVerdict& tie = verdict.assertions.at(1);
    const auto interval = tie.timed->interval;
    seen.covered += interval && interval->low <= 1 && interval->high >= 1;
    seen.same_failed += same.outcome == Outcome::fails;
    seen.tie_failed += tie.outcome == Outcome::fails;
    seen.tie_held += tie.outcome == Outcome::passes;
  }
  std::fputs(fmt::format("  {} seeds{}: {} intervals contain the truth; 'within 1.5 %' failed in "
                         "{}; at the limit failed in {}, held in {}\n",
                         gates, replaying ? ", draws replayed" : "", seen.covered, seen.same_failed,
                         seen.tie_failed, seen.tie_held)
                 .c_str(),
             stdout);
  return seen;
}

TEST(LoaderDraws, LeaveTheRatioOfTheMeansWhereItIs) {
  const Scenario scenario = jittering();
  const auto device = make_simulated_device(profile_of_round_numbers(usual_noise), {.seed = 1});
  std::vector<double> times;
  for (const StepPlan& plan : build_step_plans(scenario, 1)) {
    const StepResult result = device->load(plan)->run({.wash_out_steps = 50, .steps = 200'000});
    times.push_back(static_cast<double>(result.elapsed->count()));
  }
  // The tolerance is three standard errors of 200,000 draws.
  EXPECT_NEAR(times[1] / times[0], 1, 3 * 0.45 / std::sqrt(200'000));
}

TEST(LoaderDraws, AreDealtWithEveryRound) {
  const Seen seen = seen_on(false);
  EXPECT_LE(gates - seen.covered, gates * most_of(gates, 1 - confidence));
  EXPECT_LE(seen.same_failed, gates * most_of(gates, JudgeSettings{}.alpha));
  EXPECT_LE(seen.tie_failed, gates * most_of(gates, JudgeSettings{}.alpha));
  EXPECT_LE(seen.tie_held, gates * most_of(gates, JudgeSettings{}.beta));
}

// If all rounds shared the draws, they would look like an effect of the code.
TEST(LoaderDraws, WouldBeMissedWereTheyReplayed) {
  const Seen seen = seen_on(true);
  EXPECT_GT(gates - seen.covered, gates / 2);
  EXPECT_GT(seen.tie_failed, gates * most_of(gates, JudgeSettings{}.alpha));
  EXPECT_GT(seen.tie_held, gates * most_of(gates, JudgeSettings{}.beta));
}

}  // namespace
}  // namespace stepgate
