// SPDX-License-Identifier: MIT
// Tests assertions about high percentiles of steps with spikes, which differ between variants: true
// ones do not fail, false ones do not pass, and clear ones are decided. Also tests means and rates
// of such steps, whose logarithm is biased where segments differ.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>

#include "base/stats/quantile.h"
#include "judge/testing/fake_scenario.h"

namespace stepgate {
namespace {

struct Spikes {
  double step_us = 1000;
  double share = 0;   // of steps
  double longer = 0;  // by so many steps
};

double drawn_us(const Spikes& steps, Random& random) {
  double us = steps.step_us * (1 + 0.01 * random.normal());
  if (random.uniform() < steps.share)
    us += steps.step_us * steps.longer * (1 + 0.05 * random.normal());
  return us;
}

double percentile_of(const Spikes& steps, double percentile) {
  Random random(11);
  std::vector<double> times(200'000);
  for (double& time : times) time = drawn_us(steps, random);
  return nearest_rank(std::move(times), percentile);
}

StepTime spiking(const Spikes& baseline, const Spikes& fix, std::uint64_t seed) {
  return [=, random = Random(seed)](const std::string& variant, std::int64_t) mutable {
    const double us = drawn_us(variant == "fix" ? fix : baseline, random);
    return std::chrono::nanoseconds(std::llround(1000 * us));
  };
}

struct PercentileCase {
  const char* name;
  Metric metric;
  Spikes baseline;
  Spikes fix;
};

// Steps take 0.2 to 20 ms, and 0.5 to 8 % of them have spikes.
const PercentileCase percentile_cases[]{
    {"short", Metric::step_ms_p99, {200, 0.03, 1}, {200, 0.03, 2}},
    {"fewer_and_longer", Metric::step_ms_p99, {1500, 0.08, 0.5}, {1500, 0.015, 3}},
    {"more_and_shorter", Metric::step_ms_p99, {5000, 0.02, 3}, {5000, 0.08, 0.5}},
    {"rarer_than_the_percentile", Metric::step_ms_p99, {20'000, 0.005, 8}, {24'000, 0.005, 2}},
    {"one_side", Metric::step_ms_p95, {3000, 0, 0}, {3000, 0.08, 1}},
    {"long", Metric::step_ms_p95, {20'000, 0.08, 1}, {20'000, 0.06, 1.5}},
};

// Judges a high percentile that is `times_limit` times its limit.
Outcome decided(const PercentileCase& one, double times_limit, std::uint64_t seed) {
  const double percentile = *percentile_of(one.metric);
  const double truth = percentile_of(one.fix, percentile) / percentile_of(one.baseline, percentile);
  Scenario scenario =
      scenario_of({fix_against_baseline(one.metric, Relation::at_most, truth / times_limit)});
  scenario.measure.fewest_steps = fewest_steps_of(one.metric);
  scenario.measure.max_seconds = 300;
  Script script;
  script.step_time = spiking(one.baseline, one.fix, seed);
  return measure_and_judge(scenario, script, seed).verdict.outcome;
}

TEST(Percentiles, AreDecidedRightly) {
  constexpr int gates = 16;
  for (const double times_limit : {0.5, 0.9, 0.98, 1.02, 1.1, 2.0}) {
    int held = 0;
    int failed = 0;
    int all = 0;
    for (const PercentileCase& one : percentile_cases) {
      for (std::uint64_t seed = 1; seed <= gates; ++seed, ++all) {
        const Outcome outcome = decided(one, times_limit, seed);
        held += outcome == Outcome::passes;
        failed += outcome == Outcome::fails;
      }
    }
    std::printf("percentiles at %.2f of their limit: of %d held %d, failed %d\n", times_limit, all,
                held, failed);
    if (times_limit < 1) {
      EXPECT_LE(failed, all * 0.01 + 3 * std::sqrt(all * 0.01)) << times_limit;
    } else {
      EXPECT_LE(held, all * 0.05 + 3 * std::sqrt(all * 0.05)) << times_limit;
    }
    if (times_limit == 0.5) {
      EXPECT_GE(held, 0.9 * all);
    } else if (times_limit == 2.0) {
      EXPECT_GE(failed, 0.9 * all);
    }
  }
}

// The baseline stalls now and then; the fix is always a little slower but faster in total. A true
// assertion about rates does not fail, and its mirror image does not pass.
TEST(Percentiles, OfWhichTotalTimeKnowsMoreDecideNothingAgainstIt) {
  struct Stalls {
    Spikes baseline;
    double fix_longer;
  };
  for (const Stalls& one : {Stalls{{300, 0.02, 1}, 1.01}, Stalls{{1500, 0.02, 1}, 1.01},
                            Stalls{{300, 0.05, 2}, 1.05}, Stalls{{900, 0.03, 3}, 1.06}}) {
    int wrong = 0;
    for (std::uint64_t seed = 1; seed <= 40; ++seed) {
      Spikes fix = one.baseline;
      fix.share = 0;
      fix.step_us *= one.fix_longer;
      Script script;
      script.step_time = spiking(one.baseline, fix, seed);
      Scenario scenario =
          scenario_of({fix_against_baseline(Metric::samples_per_s, Relation::at_least, 1)});
      scenario.measure.rounds = 40;
      wrong += measure_and_judge(scenario, script, seed).verdict.outcome == Outcome::fails;
    }
    EXPECT_LE(wrong, 1) << one.baseline.step_us << " us";
  }
}

}  // namespace
}  // namespace stepgate
