// SPDX-License-Identifier: MIT
// For tests only: a scenario of one small step, artificial runs of it, and baselines of such runs.
#pragma once

#include <cmath>
#include <string>
#include <vector>

#include "judge/judge.h"
#include "judge/stored/baseline.h"
#include "judge/testing/fake_scenario.h"

namespace stepgate {

inline Scenario scenario_of_one(std::vector<Expectation> expect) {
  Scenario scenario;
  scenario.name = "small";
  scenario.file = "scenarios/small.toml";
  scenario.variants.push_back({.name = "fix", .knobs = {}, .place = {}});
  scenario.variants.back().knobs.model.hidden = 64;
  scenario.expect = std::move(expect);
  return scenario;
}

// "fix.metric <relation> factor * stored.fix.metric"
inline Expectation fix_against_stored(Metric metric, Relation relation, double factor,
                                      std::optional<double> within = std::nullopt) {
  const Factor stored = MetricOf{"fix", metric, true};
  return assertion("line", {{of("fix", metric)}}, relation, {{factor, stored}}, within);
}

inline const Expectation no_slide =
    fix_against_stored(Metric::samples_per_s, Relation::at_least, 0.98);
// Contrasts of five runs that differ by 0.158 %: S is 0.173 %, and t with 4 degrees of freedom is
// 3.75 at 1 % and 2.13 at 5 %.
inline const std::vector<double> quiet{0.998, 0.999, 1.000, 1.001, 1.002};

// The scenario's variant, which launches 26 kernels per step, and its anchor.
inline std::vector<Subject> subjects_with_anchors(const Scenario& scenario) {
  const Knobs& knobs = scenario.variants.front().knobs;
  std::vector<Subject> subjects = subjects_named({"fix", anchor_variant("launch.1")});
  subjects[0].batch_size = static_cast<double>(knobs.batch.size);
  subjects[0].tokens = *subjects[0].batch_size * static_cast<double>(knobs.model.seq);
  subjects[0].counts = {{Metric::launches_per_step, 26}, {Metric::host_waits_per_step, 0}};
  subjects[0].anchor = "launch.1";
  return subjects;
}

inline DeviceIdentity machine() {
  return {.kind = DeviceKind::cuda,
          .name = "NVIDIA H200",
          .driver = "580.159.04",
          .runtime = "13.0",
          .compute_capability = 9,
          .memory_bytes = std::int64_t{140} << 30,
          .uuid = "GPU-1",
          .cpu = "a CPU",
          .power_limit = "700 W",
          .pcie = "5 x16",
          .keys = {{"ecc", "on"}}};
}

constexpr double anchor_seconds = 1e-4;
inline const double log_of_anchor = std::log(anchor_seconds);

// Rounds in which the step takes exp(contrast) times the anchor's 100 us. All times are multiplied
// by `slower`.
inline Measurement measured(const std::vector<Subject>& subjects, double contrast,
                            std::int64_t rounds = rounds_of_stored_run, double slower = 1) {
  Measurement measurement;
  measurement.device = machine();
  for (const Subject& subject : subjects) {
    measurement.variants.push_back({.name = subject.name, .batch_size = *subject.batch_size});
  }
  for (std::int64_t round = 0; round < rounds; ++round) {
    Round made;
    for (int variant = 0; variant < static_cast<int>(subjects.size()); ++variant) {
      const double seconds = slower * anchor_seconds * (variant == 0 ? std::exp(contrast) : 1);
      const std::chrono::nanoseconds step(static_cast<std::int64_t>(std::round(1e9 * seconds)));
      made.segments.push_back(
          {.variant = variant, .steps = 1000, .elapsed = 1000 * step, .step_times = {step, step}});
    }
    measurement.rounds.push_back(std::move(made));
  }
  return measurement;
}

// One run for each contrast, each on a different day.
inline Baseline baseline_of(const Scenario& scenario, const std::vector<double>& contrasts) {
  Baseline baseline{"baselines/nvidia-h200/small.toml", scenario.name, {}};
  const std::vector<Subject> subjects = subjects_with_anchors(scenario);
  for (const double contrast : contrasts) {
    const std::string day = std::to_string(10 + baseline.runs.size());
    baseline.runs.push_back(stored_run(scenario, subjects, measured(subjects, contrast),
                                       {.date = "2026-11-" + day + "T10:00:00Z",
                                        .commit = "0123abc",
                                        .stepgate = "0.1.0",
                                        .scenario = 0x1234,
                                        .seed = baseline.runs.size(),
                                        .boot = ""}));
  }
  return baseline;
}

// Judges a run of a scenario with a single assertion and returns its verdict.
inline AssertionVerdict judged(const Scenario& scenario, const std::optional<Baseline>& baseline,
                               const Measurement& measurement) {
  const std::vector<Subject> subjects = subjects_with_anchors(scenario);
  const JudgeSettings settings{.baseline = baseline};
  return judge(scenario, subjects, measurement, settings).assertions.front();
}

inline AssertionVerdict judged(const Expectation& assertion, const std::vector<double>& stored,
                               double contrast) {
  const Scenario scenario = scenario_of_one({assertion});
  return judged(scenario, baseline_of(scenario, stored),
                measured(subjects_with_anchors(scenario), contrast));
}

}  // namespace stepgate
