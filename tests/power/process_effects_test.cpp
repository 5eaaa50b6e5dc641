// SPDX-License-Identifier: MIT
// Tests effects that a process keeps from its start. Rounds measure only this process; estimates
// from many processes predict the next one. Runs identical code on the simulated device, one seed
// per process, with process effects of 0.05 to 0.5 %, and prints a table of both.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>

#include "compare/gate/self_test.h"
#include "device/simulated/simulated_device.h"
#include "plan/compose/build_step_plan.h"
#include "plan/count/facts_of.h"
#include "scenario/read/read_scenario.h"
#include "tests/contract/judged_on_device.h"
#include "tests/round_numbers.h"

namespace stepgate {
namespace {

constexpr int processes = 150;
constexpr double usual_margin = 0.005;
const double alpha = JudgeSettings{}.alpha;
const double beta = JudgeSettings{}.beta;

// Each step has one millisecond of device work; there are thirty rounds at most.
Scenario device_bound() {
  return parse_scenario(
      "claim = \"a variant is as fast as itself\"\n"
      "model = { kind = \"spin\", kernels = 2, kernel_us = 500 }\nmeasure = { rounds = 30 }\n"
      "[variant.fix]\n[variant.other]\n"
      "[expect]\nline = \"fix.samples_per_s >= 0.9 * other.samples_per_s\"\n",
      "device_bound.toml");
}

// A scenario with the same step as `a` and as `b`, and the assertion that `b` takes longer by the
// margin at most.
struct Identical {
  Scenario scenario;
  std::vector<StepPlan> plans;
};
Identical identical(double margin) {
  Identical same{.scenario = device_bound(), .plans = {}};
  same.plans.assign(2, build_step_plans(same.scenario, 1).front());
  for (std::size_t side = 0; side < 2; ++side) {
    same.plans[side].variant = side == 0 ? "a" : "b";
    same.scenario.variants[side].name = same.plans[side].variant;
  }
  Expectation& assertion = same.scenario.expect.front();
  assertion.left = {{MetricOf{"b", Metric::step_ms_mean}}};
  assertion.relation = Relation::at_most;
  assertion.right = {{1 + margin, MetricOf{"a", Metric::step_ms_mean}}};
  return same;
}

// A process with effects of this standard deviation. The effects depend only on the seed, not on
// other noise, as long as the variants are first loaded in this order.
std::unique_ptr<Device> process(double deviation, const Identical& gate, std::uint64_t seed,
                                NoiseCosts noise) {
  noise.between_processes = deviation;
  auto device = make_simulated_device(profile_of_round_numbers(noise), {.seed = seed});
  for (const StepPlan& plan : gate.plans) (void)device->load(plan);
  return device;
}
constexpr NoiseCosts like_a_gpu{
    .within_rounds = 0.01, .between_rounds = 0.001, .between_loads = 0.002};

// The ratio b / a in that process without noise.
double own_ratio(double deviation, const Identical& gate, std::uint64_t seed) {
  const auto device = process(deviation, gate, seed, {});
  std::vector<double> times;
  for (const StepPlan& plan : gate.plans) {
    const StepResult result = device->load(plan)->run({.wash_out_steps = 20, .steps = 20});
    times.push_back(static_cast<double>(result.elapsed->count()));
  }
  return times[1] / times[0];
}

struct Seen {
  int failed = 0;
  int held = 0;
  int own_ratio_missed = 0;  // outside of the interval
  int tie_missed = 0;
  SelfTest test;  // the single trial of a self-test, with one gate per process
};

Seen seen_at(double deviation, double margin) {
  const Identical gate = identical(margin);
  const std::vector<PlannedStep> plans = with_facts(gate.plans);
  const JudgeSettings settings;
  Seen seen;
  std::vector<TriedGate> results;
  for (std::uint64_t seed = 1; seed <= processes; ++seed) {
    const auto device = process(deviation, gate, seed, like_a_gpu);
    const Measurement measured = measured_on(*device, gate.scenario, plans, seed);
    const Verdict verdict = judge(gate.scenario, subjects_of(plans), measured, settings);
    const AssertionVerdict& line = verdict.assertions.front();
    const auto contains = [&](double ratio) {
      const auto interval = line.timed->interval;
      // The interval is that of b / ((1 + margin) * a).
      const double over_limit = ratio / (1 + margin);
      if (interval) return interval->low <= over_limit && over_limit <= interval->high;
      // After five rounds, the shown bound is the one by which the assertion passes.
      const Bounds& shown = line.timed->shown;
      return (!shown.low || *shown.low <= over_limit) && (!shown.high || over_limit <= *shown.high);
    };
    results.push_back({.outcome = line.outcome, .pairs = std::ssize(measured.rounds)});
    std::vector<double> log_ratios = line.timed->contrasts;  // to the limit
    for (double& log_ratio : log_ratios) log_ratio += std::log1p(margin);
    set_estimate(results.back(), log_ratios);
    seen.failed += line.outcome == Outcome::fails;
    seen.held += line.outcome == Outcome::passes;
    seen.own_ratio_missed += !contains(own_ratio(deviation, gate, seed));
    seen.tie_missed += !contains(1);
  }
  seen.test.margin = margin;
  seen.test.alpha = alpha;
  seen.test.trials = {result_of(self_test_trials().front(), results)};
  return seen;
}

double between(const Seen& seen) {
  return between_gates(seen.test.trials.front()).value();
}

void print_row(double deviation, double margin, const Seen& seen) {
  std::fputs(
      fmt::format("  effects of {:4.2f} %, margin {:4.2f} %: {:3} failed, {:3} held of {}; outside "
                  "the interval: own ratio {:2}, 1x {:3}; {}, processes differ by {:.3f} %, "
                  "smallest margin {:.2f} %\n",
                  100 * deviation, 100 * margin, seen.failed, seen.held, processes,
                  seen.own_ratio_missed, seen.tie_missed,
                  blocked_too_often(seen.test) ? "too often" : "within alpha", 100 * between(seen),
                  100 * smallest_margin(seen.test).value())
          .c_str(),
      stdout);
}

double most(double rate) {
  return processes * most_of(processes, rate);
}

// At most 1 and 5 % of runs are wrong about their own process. About the code they are wrong with
// the rates in these rows, which no number of rounds can reduce. The rates were measured, here and
// in docs/verdict.md.
TEST(ProcessEffects, AreWhatRoundsTellOfIdenticalCode) {
  // Rates for a variant's deviation, and for identical code at the limit within one process.
  for (const DocumentedRates& row : {DocumentedRates{0.0005, 0.02, 0.06},
                                     {0.001, 0.073, 0.1},
                                     {0.003, 0.33, 0.35},
                                     {0.005, 0.39, 0.41}}) {
    SCOPED_TRACE(row.size);
    const Seen seen = seen_at(row.size, 0);
    print_row(row.size, 0, seen);
    EXPECT_LE(seen.own_ratio_missed, most(0.05)) << "of the intervals are about their process";
    EXPECT_LE(seen.failed, most(row.failed));
    EXPECT_LE(seen.held, most(row.held));
    // Each of the two variants has an effect. The scatter that rounds add is subtracted.
    const double planted = std::sqrt(2) * row.size;
    const double three_standard_errors = 3 / std::sqrt(2.0 * processes);
    const double with_rounds = std::hypot(planted, 0.0006);
    const double least = (1 - three_standard_errors) * with_rounds;
    EXPECT_GE(between(seen), std::sqrt(std::max(least * least - 0.0006 * 0.0006, 0.0)));
    EXPECT_LE(between(seen), (1 + three_standard_errors) * with_rounds);
  }
}

// The margin that a self-test recommends from several processes also holds for the next process.
TEST(ProcessEffects, AreWhatASelfTestNamesAMarginFor) {
  for (const double deviation : {0.0005, 0.001, 0.003, 0.005}) {
    SCOPED_TRACE(deviation);
    const Seen seen = seen_at(deviation, usual_margin);
    print_row(deviation, usual_margin, seen);
    const double wanted = smallest_margin(seen.test).value();
    if (deviation <= 0.001) {
      EXPECT_LE(seen.failed, most(alpha));
      EXPECT_FALSE(blocked_too_often(seen.test));
      EXPECT_LT(wanted, usual_margin);
      continue;
    }
    EXPECT_GT(wanted, usual_margin);
    EXPECT_TRUE(deviation < 0.005 || blocked_too_often(seen.test));
    const Seen wider = seen_at(deviation, wanted);
    print_row(deviation, wanted, wider);
    EXPECT_LE(wider.failed, most(alpha));
    EXPECT_FALSE(blocked_too_often(wider.test));
  }
}

}  // namespace
}  // namespace stepgate
