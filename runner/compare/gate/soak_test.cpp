// SPDX-License-Identifier: MIT
#include "compare/gate/soak.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/random.h"
#include "compare/testing/simulated_worker.h"
#include "plan/compose/build_step_plan.h"
#include "plan/count/facts_of.h"
#include "scenario/read/read_scenario.h"

namespace stepgate {
namespace {

struct LateStalls {
  std::int64_t after_steps = 0;
  double in_steps = 0;  // probability per step
  std::chrono::nanoseconds length{0};
};

class StallingWorker : public SimulatedWorker {
 public:
  StallingWorker(const PlannedStep& step, const DeviceProfile& profile, std::uint64_t seed,
                 const LateStalls& stalls)
      : SimulatedWorker(step, profile, seed), stalls_(stalls), random_(seed) {}

  Loaded load(const std::string& workload) override {
    steps_ = 0;
    return SimulatedWorker::load(workload);
  }
  Ran run(const RunSteps& run) override {
    Ran ran = SimulatedWorker::run(run);
    for (std::int64_t step = 0; step < ran.steps; ++step) {
      const bool is_late = ++steps_ > stalls_.after_steps;
      if (is_late && random_.uniform() < stalls_.in_steps) ran.elapsed += stalls_.length;
    }
    return ran;
  }

 private:
  LateStalls stalls_;
  Random random_;
  std::int64_t steps_ = 0;
};

// Counts nightly soaks with this outcome, of one workload on a simulated H200 with this noise.
int nights_with(Outcome outcome, const NoiseCosts& noise, int nights,
                const LateStalls& stalls = {}) {
  const Scenario scenario = parse_scenario(
      "claim = \"c\"\nmodel = { kind = \"spin\", kernels = 2, kernel_us = 200 }\n"
      "[variant.step]\n[expect]\nfew = \"step.launches_per_step <= 9\"\n",
      "soak.toml");
  const std::vector<PlannedStep> plans = with_facts(build_step_plans(scenario, 1));
  DeviceProfile profile = read_profile(STEPGATE_SOURCE_DIR "/baselines/nvidia-h200/device.toml");
  const double spikes = profile.noise.spike_probability;
  profile.noise = noise;
  profile.noise.spike_probability = spikes;
  profile.noise.spike_nanoseconds = 30'000;
  int found = 0;
  for (int night = 0; night < nights; ++night) {
    std::uint64_t launches = 0;
    const SoakedWorkload soaked = soak("soak/step", 0.02, [&] {
      return std::make_unique<StallingWorker>(
          plans.front(), profile, random_bits(1 + static_cast<std::uint64_t>(night), launches++),
          stalls);
    });
    EXPECT_EQ(soaked.steps, steps_of_a_soak);
    found += soaked.outcome == outcome;
  }
  return found;
}

const NoiseCosts usual{.within_rounds = 0.01,
                       .between_rounds = 0.001,
                       .between_loads = 0.002,
                       .between_slots = 0.005,
                       .between_processes = 0.0005};

TEST(Soak, FindsAClockThatFallsAndAListThatGrowsAndALeak) {
  for (const std::int64_t after : {200, 1'000, 5'000}) {
    NoiseCosts falls = usual;
    falls.slower_after_steps = after;
    falls.slower_by = 0.05;
    EXPECT_GE(nights_with(Outcome::fails, falls, 3), 3) << after;
    NoiseCosts grows = usual;
    grows.slower_after_steps = after;
    grows.slower_each_step = after == 5'000 ? 1e-4 : 1e-5;
    EXPECT_GE(nights_with(Outcome::fails, grows, 3), 3) << after;
  }
}

// Fewer than half of the segments stall, so that a median shows no stall.
TEST(Soak, FindsStallsThatBeginLate) {
  using std::chrono::milliseconds;
  EXPECT_EQ(nights_with(Outcome::fails, usual, 3, {1'000, 0.05, milliseconds(4)}), 3);
  EXPECT_EQ(nights_with(Outcome::fails, usual, 3, {3'000, 0.02, milliseconds(4)}), 3);
  EXPECT_EQ(nights_with(Outcome::fails, usual, 3, {4'500, 0.02, milliseconds(4)}), 3);
}

// One step in five hundred is too rare to be significant, but its total time is not.
TEST(Soak, PassesNothingWhoseSecondHalfTakesLongerInTotal) {
  using std::chrono::milliseconds;
  EXPECT_EQ(nights_with(Outcome::undecided, usual, 3, {3'000, 0.002, milliseconds(30)}), 3);
}

TEST(Soak, RaisesNoAlarmWhereStallsAreThereFromTheBeginning) {
  using std::chrono::milliseconds;
  EXPECT_EQ(nights_with(Outcome::fails, usual, 10, {0, 0.02, milliseconds(4)}), 0);
}

TEST(Soak, RaisesNoAlarmWhereNothingBecomesSlower) {
  EXPECT_EQ(nights_with(Outcome::passes, usual, 10), 10);
}

TEST(Soak, IsAComparisonOfLateStepsWithEarlyOnes) {
  const SoakedWorkload slower{.name = "a/fix",
                              .margin = 0.05,
                              .outcome = Outcome::fails,
                              .steps = 6'000,
                              .early_seconds = 1e-3,
                              .late_seconds = 2e-3,
                              .reason = "why"};
  const ComparisonVerdict verdict = verdict_of({&slower, 1}, {}, {});
  ASSERT_EQ(verdict.workloads.size(), 1U);
  EXPECT_EQ(verdict.workloads[0].base_step_seconds, 1e-3);
  EXPECT_EQ(verdict.workloads[0].head_step_seconds, 2e-3);
  EXPECT_EQ(verdict.workloads[0].outcome, Outcome::fails);
  EXPECT_EQ(verdict.workloads[0].margin, 0.05);
}

}  // namespace
}  // namespace stepgate
