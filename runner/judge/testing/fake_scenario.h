// SPDX-License-Identifier: MIT
// For tests only: sentences built by hand, scenarios round them, a plan that counts what the test
// says, and what traces would have told of its variants.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "judge/judge.h"
#include "measure/rounds/measure.h"
#include "measure/testing/fake_device.h"
#include "measure/trace/traced.h"
#include "scenario/scenario.h"
#include "support/random.h"

namespace stepgate {

// Error rates of a sentence that is tried alone.
inline constexpr double alpha = 0.01;
inline constexpr double beta = 0.05;

inline Factor of(const std::string& variant, Metric metric) {
  return MetricOf{variant, metric};
}

inline Expectation sentence(const std::string& name, Side left, Relation relation, Side right,
                            std::optional<double> within = std::nullopt) {
  Expectation expectation;
  expectation.name = name;
  expectation.text = "text of " + name;
  expectation.left = std::move(left);
  expectation.relation = relation;
  expectation.right = std::move(right);
  expectation.within = within;
  return expectation;
}

// "fix.metric >= factor * baseline.metric", or another relation.
inline Expectation fix_against_baseline(Metric metric, Relation relation, double factor,
                                        std::optional<double> within = std::nullopt) {
  return sentence("pays", {{of("fix", metric)}}, relation, {{factor, of("baseline", metric)}},
                  within);
}

inline Scenario scenario_of(std::vector<Expectation> expect, std::vector<Expectation> regime = {}) {
  Scenario scenario;
  scenario.name = "scripted";
  scenario.claim = "the fix pays";
  for (const char* name : {"baseline", "fix"}) {
    scenario.variants.emplace_back();
    scenario.variants.back().name = name;
  }
  scenario.expect = std::move(expect);
  scenario.regime = std::move(regime);
  return scenario;
}

// The baseline waits for the device once a step and holds twice the memory of the fix.
inline std::vector<PlannedStep> counted_by_script() {
  std::vector<PlannedStep> steps;
  for (StepPlan& plan : plans_named({"baseline", "fix"})) {
    const bool baseline = plan.variant == "baseline";
    const double bytes = (baseline ? 64 : 32) * 1024.0 * 1024.0;
    PlanFacts facts;
    facts.counts = {{Metric::host_waits_per_step, baseline ? 1 : 0},
                    {Metric::peak_reserved, bytes},
                    {Metric::peak_live, bytes}};
    steps.emplace_back(std::move(plan), std::move(facts));
  }
  return steps;
}

struct Judged {
  Measurement measurement;
  Verdict verdict;
};

// Parts of a step, in microseconds.
struct PartsByHand {
  double math = 0;
  double memory = 0;
  double latency = 0;
  double copies = 0;
  double communication = 0;
  double idle_after_wait = 0;
  double idle_for_data = 0;
  double idle_for_host = 0;
  double idle_in_queue = 0;
};

inline TracedStep traced_step(const PartsByHand& parts, std::map<Metric, double> values = {}) {
  TracedStep step;
  step.values = std::move(values);
  const auto seconds = [](double microseconds) { return microseconds / 1e6; };
  step.time = {.math = seconds(parts.math),
               .memory = seconds(parts.memory),
               .latency = seconds(parts.latency),
               .copies = seconds(parts.copies),
               .communication = seconds(parts.communication),
               .idle_after_wait = seconds(parts.idle_after_wait),
               .idle_for_data = seconds(parts.idle_for_data),
               .idle_for_host = seconds(parts.idle_for_host),
               .idle_in_queue = seconds(parts.idle_in_queue)};
  const TimeBreakdown& time = step.time;
  step.time.step = time.math + time.memory + time.latency + time.copies + time.communication +
                   time.idle_after_wait + time.idle_for_data + time.idle_for_host +
                   time.idle_in_queue;
  return step;
}

// The same steps in every round.
inline Traced traced_rounds(const std::vector<TracedStep>& variants, std::size_t rounds = 7) {
  Traced traced;
  traced.steps = 20;
  traced.wall_time = std::chrono::milliseconds(100 * static_cast<std::int64_t>(rounds));
  traced.rounds.assign(rounds, TracedRound{variants});
  return traced;
}

// Every traced round gets the next of the values of one variant's metric.
inline void set_values(Traced& traced, std::size_t variant, Metric metric,
                       const std::vector<double>& values) {
  for (std::size_t round = 0; round < traced.rounds.size(); ++round) {
    traced.rounds[round].variants[variant].values[metric] = values[round % values.size()];
  }
}

// A trace of the two variants: the same waits as counted_by_script, 400 us of idle time after each.
inline Traced traced_by_script() {
  TracedStep baseline = traced_step({.math = 1200, .memory = 400, .idle_after_wait = 400},
                                    {{Metric::host_waits_per_step, 1}, {Metric::gpu_idle, 0.2}});
  baseline.phases[static_cast<std::size_t>(Phase::sync)].host_waits = 1;
  TracedStep fix = traced_step({.math = 1200, .memory = 400},
                               {{Metric::host_waits_per_step, 0}, {Metric::gpu_idle, 0}});
  baseline.work = {{"matmul", {.times = 12, .seconds = 1.2e-3}},
                   {"adamw", {.times = 1, .seconds = 4e-4}}};
  fix.work = baseline.work;
  return traced_rounds({baseline, fix});
}

// Measures the scenario on the script and judges it, as a whole run would.
inline Judged measure_and_judge(const Scenario& scenario, Script& script, std::uint64_t seed,
                                std::optional<Traced> traced = traced_by_script()) {
  const std::vector<PlannedStep> plans = counted_by_script();
  FakeDevice device(script);
  MeasureRequest request;
  request.knobs = scenario.measure;
  request.scenario_fingerprint = 0x1234;
  request.seed = seed;
  request.fewest_rounds = fewest_rounds_to_hold(scenario, {});
  request.enough = enough_evidence(scenario, plans, {});
  Judged judged;
  judged.measurement = measure(device, plans, request);
  judged.measurement.traced = std::move(traced);
  judged.verdict = judge(scenario, plans, judged.measurement, {});
  return judged;
}

// Times with noise and outliers of the host, seeded: `fix_ratio` is fix over baseline.
inline StepTime noisy(double fix_ratio, std::uint64_t seed, double noise = 0.01,
                      double outliers = 0.01) {
  return [=, random = Random(seed)](const std::string& variant, std::int64_t) mutable {
    double microseconds = 1000 * (variant == "fix" ? fix_ratio : 1);
    microseconds *= 1 + noise * random.normal();
    if (random.uniform() < outliers) microseconds *= 1 + 3 * random.uniform();
    return std::chrono::nanoseconds(static_cast<std::int64_t>(1000 * microseconds));
  };
}

}  // namespace stepgate
