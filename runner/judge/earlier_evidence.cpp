// SPDX-License-Identifier: MIT
#include "judge/earlier_evidence.h"

#include <algorithm>
#include <cmath>

#include "base/fnv1a.h"
#include "base/toml/toml_text.h"
#include "judge/assertion_test.h"
#include "judge/judge.h"
#include "judge/judge_environment.h"
#include "judge/stored/stored_assertion.h"
#include "judge/verdict/sides.h"

namespace stepgate {
namespace {

bool is_printable_ascii(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return c >= ' ' && c <= '~'; });
}

// Replaces negative zeros by zeros, since a file does not preserve them.
std::vector<double> as_kept(std::span<const double> numbers) {
  std::vector<double> kept(numbers.begin(), numbers.end());
  for (double& number : kept) number += 0.0;
  return kept;
}

// Returns the contrasts as the tests received them. An assertion with an unknown value in a round
// has none.
EarlierRounds rounds_in(const std::vector<Expectation>& assertions,
                        std::span<const Subject> subjects, const Measurement& measurement,
                        const JudgeSettings& settings) {
  EarlierRounds all;
  for (const Expectation& assertion : assertions) {
    if (!is_decided_by_rounds(assertion)) continue;
    AssertionTest test(assertion, subjects, settings, {});
    for (const Sources& round : rounds_that_decide(assertion, subjects, measurement))
      test.add(round);
    if (!test.values_are_known() || test.contrasts().empty()) continue;
    all.contrasts[name_in_files(assertion)] = as_kept(test.contrasts());
    if (!test.times().empty()) all.times[name_in_files(assertion)] = as_kept(test.times());
  }
  return all;
}

// Adds this run's result for assertions about stored times, once the run has enough rounds.
void add_looks(const std::vector<Expectation>& assertions, std::span<const Subject> subjects,
               const Measurement& measurement, EarlierEvidence& to) {
  for (const Expectation& assertion : assertions) {
    if (!compares_stored_times(assertion)) continue;
    const auto look = look_at_stored(assertion, subjects, measurement);
    if (!look) continue;
    to.stored[name_in_files(assertion)] = {look->contrast + 0.0};
    to.stored_anchors[name_in_files(assertion)] = {look->anchor + 0.0};
  }
}

}  // namespace

void append(Contrasts& all, const Contrasts& more) {
  for (const auto& [name, series] : more) {
    std::vector<double>& to = all[name];
    to.insert(to.end(), series.begin(), series.end());
  }
}

void append(EarlierRounds& all, const EarlierRounds& more) {
  append(all.contrasts, more.contrasts);
  append(all.times, more.times);
}

std::string name_in_files(const Expectation& assertion) {
  return is_printable_ascii(assertion.name) ? assertion.name : hexadecimal(fnv1a(assertion.name));
}

std::span<const double> contrasts_for(const Expectation& assertion, const Contrasts& all) {
  const auto found = all.find(name_in_files(assertion));
  return found == all.end() ? std::span<const double>() : found->second;
}

bool is_decided_by_rounds(const Expectation& assertion) {
  return evidence_of(assertion) >= Evidence::timed && !names_stored(assertion);
}

bool has_assertion_to_go_on_from(const Scenario& scenario) {
  return std::any_of(scenario.regime.begin(), scenario.regime.end(), is_decided_by_rounds) ||
         std::any_of(scenario.expect.begin(), scenario.expect.end(), is_decided_by_rounds) ||
         std::any_of(scenario.expect.begin(), scenario.expect.end(), compares_stored_times);
}

std::int64_t most_rounds(const EarlierEvidence& earlier) {
  std::int64_t most = 0;
  for (const EarlierRounds* rounds : {&earlier.regime, &earlier.expect}) {
    for (const auto& [name, series] : rounds->contrasts) most = std::max(most, std::ssize(series));
  }
  return most;
}

bool is_failed_by_earlier(const Scenario& scenario, std::span<const Subject> subjects,
                          const JudgeSettings& settings) {
  return std::any_of(
      scenario.expect.begin(), scenario.expect.end(), [&](const Expectation& assertion) {
        return is_decided_by_rounds(assertion) &&
               AssertionTest(assertion, subjects, settings, settings.earlier.expect).outcome() ==
                   Outcome::fails;
      });
}

bool nothing_left_to_measure(const Scenario& scenario, std::span<const Subject> subjects,
                             const JudgeSettings& settings) {
  if (settings.earlier.runs == 0) return false;
  const auto outcome_of = [&](const Expectation& assertion, const EarlierRounds& earlier) {
    return AssertionTest(assertion, subjects, settings, earlier).outcome();
  };
  bool all_decided = true;
  for (const Expectation& assertion : scenario.regime) {
    if (!is_decided_by_rounds(assertion)) continue;
    const Outcome outcome = outcome_of(assertion, settings.earlier.regime);
    if (outcome == Outcome::fails) return true;
    all_decided = all_decided && outcome != Outcome::undecided;
  }
  for (const Expectation& assertion : scenario.expect) {
    if (!is_decided_by_rounds(assertion)) continue;
    all_decided =
        all_decided && outcome_of(assertion, settings.earlier.expect) != Outcome::undecided;
  }
  return all_decided;
}

EarlierEvidence evidence_of_rounds(const Scenario& scenario, std::span<const Subject> subjects,
                                   const Measurement& measurement, const JudgeSettings& settings) {
  EarlierEvidence evidence{.runs = 1,
                           .regime = rounds_in(scenario.regime, subjects, measurement, settings),
                           .expect = rounds_in(scenario.expect, subjects, measurement, settings)};
  add_looks(scenario.expect, subjects, measurement, evidence);
  return evidence;
}

bool is_trusted(const Measurement& measurement) {
  return !measurement.another_step && measurement.broken.empty() &&
         !environment_of(measurement).disturbance();
}

Measurement unmeasured(const Scenario& scenario, std::span<const Subject> subjects,
                       const DeviceIdentity& device, std::uint64_t seed) {
  Measurement measurement;
  measurement.device = device;
  measurement.scenario_fingerprint = scenario.fingerprint;
  measurement.seed = seed;
  for (const Subject& subject : subjects) {
    measurement.variants.push_back({.name = subject.name, .batch_size = subject.batch_size});
  }
  return measurement;
}

}  // namespace stepgate
