// SPDX-License-Identifier: MIT
// Tests the gate against stored runs as a whole, on simulated machines whose processes have random
// effects. It measures how often the gate fails wrongly at the limit, and how often it finds a
// slowdown. base/stats/prediction_interval_test.cpp tests the rule alone.
#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <iostream>
#include <utility>

#include "device/simulated/simulated_device.h"
#include "judge/judge.h"
#include "measure/planned_subject.h"
#include "plan/compose/build_step_plan.h"
#include "plan/count/facts_of.h"
#include "plan/derive/anchors.h"
#include "scenario/read/read_scenario.h"

namespace stepgate {
namespace {

constexpr double limit = 0.98;
constexpr int gates = 1000;
constexpr int stored_runs = 5;

Scenario gated() {
  return parse_scenario(
      "claim = \"as fast as it was\"\n"
      "model = { kind = \"spin\", kernels = 4, kernel_us = 50 }\n"
      "measure = { steps = 5, warmup = 0, interleave = \"segments\" }\n"
      "[variant.fix]\n[expect]\n"
      "no_slide = \"fix.samples_per_s >= 0.98 * stored.fix.samples_per_s\"\n",
      "gated.toml");
}

class StoredGate : public testing::Test {
 protected:
  static constexpr NoiseCosts usual_noise{
      .within_rounds = 0.005, .between_rounds = 0.001, .between_processes = 0.002};

  // Measures in one process with random effects of its own. The step, which waits only for the
  // device, and its anchor, which waits for launches, are slowed down by the given factors.
  Measurement run(std::uint64_t seed, double slowdown, const NoiseCosts& noise = usual_noise,
                  double of_anchor = 1) const {
    DeviceProfile profile = read_profile(std::filesystem::path(STEPGATE_SOURCE_DIR) /
                                         "tests/baselines/round-numbers/device.toml");
    profile.noise = noise;
    for (std::int64_t* call : {&profile.host.launch_nanoseconds, &profile.host.gemm_nanoseconds})
      *call = std::llround(of_anchor * static_cast<double>(*call));
    const auto device = make_simulated_device(
        profile, {.seed = seed, .slowdowns = {{.variant = "fix", .factor = slowdown}}});
    MeasureRequest request;
    request.knobs = scenario.measure;
    request.seed = seed;
    request.knobs.max_seconds = 1e6;
    request.enough = [](const Measurement& so_far) {
      return std::ssize(so_far.rounds) >= rounds_of_stored_run;
    };
    return measure(*device, plans, request);
  }

  Outcome gate(std::uint64_t seed, double slowdown, double of_anchor = 1) const {
    JudgeSettings settings{.baseline = Baseline{"", scenario.name, {}}};
    for (std::uint64_t earlier = 1; earlier <= stored_runs; ++earlier) {
      Provenance provenance;
      provenance.seed = earlier;
      settings.baseline->runs.push_back(stored_run(
          scenario, subjects_of(plans), run(1000 * seed + earlier, 1), std::move(provenance)));
    }
    return judge(scenario, subjects_of(plans), run(1000 * seed, slowdown, usual_noise, of_anchor),
                 settings)
        .outcome;
  }

  // The shares of gates that fail, that pass, and that blame the machine.
  struct Rates {
    double failed = 0;
    double passes = 0;
    double machine = 0;
  };
  Rates rates(double slowdown, std::uint64_t seed, double of_anchor = 1) const {
    Rates rates;
    for (int index = 0; index < gates; ++index) {
      const Outcome outcome = gate(seed + static_cast<std::uint64_t>(index), slowdown, of_anchor);
      rates.failed += outcome == Outcome::fails ? 1.0 / gates : 0;
      rates.passes += outcome == Outcome::passes ? 1.0 / gates : 0;
      rates.machine += outcome == Outcome::machine_slower ? 1.0 / gates : 0;
    }
    std::cout << "seed " << seed << ": failed " << rates.failed << ", holds " << rates.passes
              << ", machine slower " << rates.machine << '\n';
    return rates;
  }

  const Scenario scenario = gated();
  const std::vector<PlannedStep> plans = with_anchors(with_facts(build_step_plans(scenario, 1)));
};

double three_standard_errors(double rate) {
  return 3 * std::sqrt(rate * (1 - rate) / gates);
}

// Without noise, a planted factor slows the step down by exactly this factor, so the limit below is
// at the intended place.
TEST_F(StoredGate, IsSlowedDownByWhatIsPlanted) {
  const auto contrast = [&](double slowdown) {
    return *contrast_to_anchor(run(1, slowdown, {}).rounds.front(), 0, 1, Metric::step_ms_mean);
  };
  EXPECT_NEAR(contrast(1 / limit) - contrast(1), -std::log(limit), 1e-4);
}

TEST_F(StoredGate, IsWrongAtTheLimitNoMoreOftenThanItSays) {
  const Rates found = rates(1 / limit, 10'000);
  EXPECT_LE(found.failed, 0.01 + three_standard_errors(0.01));
  EXPECT_LE(found.passes, 0.05 + three_standard_errors(0.05));
}

TEST_F(StoredGate, HardlyEverFailsWhatDidNotChangeAndMostlyPassesIt) {
  const Rates found = rates(1, 20'000);
  EXPECT_LE(found.failed, 0.001);
  EXPECT_GE(found.passes, 0.95);
}

TEST_F(StoredGate, FindsASlowdownOfFivePercent) {
  EXPECT_GE(rates(1.05, 30'000).failed, 0.9);
}

TEST_F(StoredGate, NeverPassesWhereEverythingTakesTwiceAsLongAndBlamesTheMachine) {
  const Rates found = rates(2, 40'000, 2);
  EXPECT_EQ(found.passes, 0);
  EXPECT_LE(found.failed, 0.001);
  EXPECT_GE(found.machine, 0.95);
}

TEST_F(StoredGate, FailsAStepThatIsSlowerOnAMachineThatIs) {
  const Rates found = rates(2.1, 50'000, 2);
  EXPECT_EQ(found.passes, 0);
  EXPECT_GE(found.failed, 0.7);
}

}  // namespace
}  // namespace stepgate
