// SPDX-License-Identifier: MIT
// Counts what a gate of two builds and a nightly soak find of stalls and of slowdowns that begin
// late, on the simulated H200. Every seed is fixed, so every count is the same again.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdio>

#include "base/random.h"
#include "compare/gate/gate_timing.h"
#include "compare/gate/judge_comparison.h"
#include "compare/gate/soak.h"
#include "compare/testing/simulated_worker.h"
#include "plan/compose/build_step_plan.h"
#include "plan/count/facts_of.h"
#include "scenario/read/read_scenario.h"

namespace stepgate {
namespace {

// A step takes about 213 us, and the host waits at its end.
class LateAndRare : public testing::Test {
 protected:
  LateAndRare()
      : scenario_(parse_scenario(
            "claim = \"c\"\nmodel = { kind = \"spin\", kernels = 10, kernel_us = 20 }\n"
            "sync = { where = \"step\", how = \"device\" }\n"
            "[variant.step]\n[expect]\nwaits = \"step.host_waits_per_step == 1\"\n",
            "workload.toml")),
        plans_(with_facts(build_step_plans(scenario_, 1))),
        base_(read_profile(STEPGATE_SOURCE_DIR "/baselines/nvidia-h200/device.toml")) {}

  // Makes a gate of one workload, as `gate` does.
  ComparisonVerdict gate(const DeviceProfile& head, std::uint64_t seed) const {
    ComparisonRequest request;
    request.workloads = {"workload"};
    request.launch = [&](ComparisonSide side, std::int64_t launch) {
      return std::make_unique<SimulatedWorker>(
          plans_.front(), side == ComparisonSide::base ? base_ : head,
          random_bits(seed, static_cast<std::uint64_t>(launch)));
    };
    request.introduction = introduce(request.launch).value();
    request.seed = seed;
    request.most_pairs = 60;
    request.clock = [] { return std::chrono::steady_clock::now().time_since_epoch(); };
    const ComparisonSettings settings{.margin = 0.02};
    time_as_a_gate(request, settings, std::chrono::seconds(240), {});
    request.undecided = undecided_workloads(request.workloads, settings);
    return judge_comparison(request.introduction, measure_comparison(request), settings);
  }

  int nights_that_end(Outcome outcome, const DeviceProfile& profile, int nights) const {
    int ended = 0;
    for (int night = 0; night < nights; ++night) {
      std::uint64_t launches = 0;
      const auto launch = [&] {
        return std::make_unique<SimulatedWorker>(
            plans_.front(), profile,
            random_bits(static_cast<std::uint64_t>(night) + 1, launches++));
      };
      ended += soak("workload", 0.02, launch).outcome == outcome;
    }
    return ended;
  }

  Scenario scenario_;
  std::vector<PlannedStep> plans_;
  DeviceProfile base_;
};

TEST_F(LateAndRare, AGatePassesFewOfThoseWithRareStalls) {
  struct Stalls {
    double probability;
    std::int64_t nanoseconds;
  };
  for (const Stalls& stalls : {Stalls{0.001, 15'000'000},
                               {0.0005, 40'000'000},
                               {0.002, 7'000'000},
                               {0.0007, 25'000'000}}) {
    DeviceProfile head = base_;
    head.noise.spike_probability = stalls.probability;
    head.noise.spike_nanoseconds = stalls.nanoseconds;
    int passed = 0;
    int blocked = 0;
    for (std::uint64_t seed = 1; seed <= 60; ++seed) {
      const Outcome outcome = gate(head, seed).outcome;
      passed += outcome == Outcome::passes;
      blocked += outcome == Outcome::fails;
    }
    std::fputs(fmt::format("  {:g} of steps stall for {:g} ms: {} of 60 passed, {} blocked\n",
                           stalls.probability, double(stalls.nanoseconds) / 1e6, passed, blocked)
                   .c_str(),
               stdout);
    EXPECT_LE(passed, 3);
  }
}

TEST_F(LateAndRare, AGatePassesIdenticalBuildsInTheFewestPairs) {
  int passed = 0;
  std::int64_t pairs = 0;
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    const ComparisonVerdict verdict = gate(base_, seed);
    passed += verdict.outcome == Outcome::passes;
    pairs += verdict.pairs;
  }
  EXPECT_EQ(passed, 60);
  EXPECT_LE(pairs, 60 * 7);
}

TEST_F(LateAndRare, ASoakFindsThemInNineteenOfTwentyNightsAndAlarmsInNoneOfFiftyClean) {
  for (const std::int64_t after : {200, 700, 2'000, 5'000}) {
    for (const double by : {0.04, 0.3, 1.0}) {
      DeviceProfile falls = base_;
      falls.noise.slower_after_steps = after;
      falls.noise.slower_by = by;
      EXPECT_GE(nights_that_end(Outcome::fails, falls, 20), 19) << after << ' ' << by;
      DeviceProfile grows = base_;
      grows.noise.slower_after_steps = after;
      grows.noise.slower_each_step = by / static_cast<double>(steps_of_a_soak - after);
      EXPECT_GE(nights_that_end(Outcome::fails, grows, 20), 19) << after << ' ' << by;
    }
  }
  EXPECT_EQ(nights_that_end(Outcome::passes, base_, 50), 50);
  DeviceProfile noisy = base_;
  noisy.noise.within_rounds *= 5;
  noisy.noise.between_rounds *= 5;
  noisy.noise.spike_probability = 0.01;
  EXPECT_EQ(nights_that_end(Outcome::fails, noisy, 50), 0);
}

}  // namespace
}  // namespace stepgate
