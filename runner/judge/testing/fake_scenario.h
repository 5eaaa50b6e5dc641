// SPDX-License-Identifier: MIT
// For tests only: handwritten assertions, scenarios with them, subjects with given counts, and the
// traces that belong to them.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "base/random.h"
#include "judge/judge.h"
#include "measure/testing/fake_runner.h"
#include "measure/testing/traced_by_hand.h"
#include "scenario/scenario.h"

namespace stepgate {

// Error rates of an assertion that is tested alone.
inline constexpr double alpha = 0.01;
inline constexpr double beta = 0.05;

inline Factor of(const std::string& variant, Metric metric) {
  return MetricOf{variant, metric};
}

inline Expectation assertion(const std::string& name, Side left, Relation relation, Side right,
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

// Makes the assertion "fix.metric >= factor * baseline.metric", or one with another relation.
inline Expectation fix_against_baseline(Metric metric, Relation relation, double factor,
                                        std::optional<double> within = std::nullopt) {
  return assertion("pays", {{of("fix", metric)}}, relation, {{factor, of("baseline", metric)}},
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

// Subjects where the baseline waits for the device once per step and holds twice the memory of the
// fix.
inline std::vector<Subject> counted_by_script() {
  std::vector<Subject> subjects = subjects_named({"baseline", "fix"});
  for (Subject& subject : subjects) {
    const bool baseline = subject.name == "baseline";
    const double bytes = (baseline ? 64 : 32) * 1024.0 * 1024.0;
    subject.counts = {{Metric::host_waits_per_step, baseline ? 1 : 0},
                      {Metric::peak_reserved, bytes},
                      {Metric::peak_live, bytes}};
  }
  return subjects;
}

struct Judged {
  Measurement measurement;
  Verdict verdict;
};

// A trace of the two variants with the waits of counted_by_script and 400 us of idle time after
// each wait.
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

// Measures the scenario with the fake device of `script` and judges it, as a whole run would.
inline Judged measure_and_judge(const Scenario& scenario, Script& script, std::uint64_t seed,
                                std::optional<Traced> traced = traced_by_script(),
                                const std::vector<Subject>& subjects = counted_by_script()) {
  FakeRunner runner(script);
  MeasureRequest request;
  request.knobs = scenario.measure;
  request.scenario_fingerprint = 0x1234;
  request.seed = seed;
  request.fewest_rounds = fewest_rounds_to_hold(scenario, {});
  request.enough = enough_evidence(scenario, subjects, {});
  Judged judged;
  judged.measurement = measure(runner, subjects, request);
  judged.measurement.traced = std::move(traced);
  judged.verdict = judge(scenario, subjects, judged.measurement, {});
  return judged;
}

// Step times with noise and host outliers, from a seed; `fix_ratio` is fix / baseline.
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
