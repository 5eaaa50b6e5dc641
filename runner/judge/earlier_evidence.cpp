// SPDX-License-Identifier: MIT
#include "judge/earlier_evidence.h"

#include <algorithm>
#include <cmath>

#include "judge/judge.h"
#include "judge/judge_environment.h"
#include "judge/sentence_test.h"
#include "judge/stored/stored_sentence.h"
#include "judge/verdict/sides.h"
#include "support/fnv1a.h"
#include "support/toml/toml_text.h"

namespace stepgate {
namespace {

bool is_printable_ascii(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return c >= ' ' && c <= '~'; });
}

// Without negative zeros, which a file reads as another number.
std::vector<double> as_kept(std::span<const double> numbers) {
  std::vector<double> kept(numbers.begin(), numbers.end());
  for (double& number : kept) number += 0.0;
  return kept;
}

// As they are bet on. Nothing of a sentence with a round that does not know its values.
EarlierRounds rounds_in(const std::vector<Expectation>& sentences,
                        std::span<const Subject> subjects, const Measurement& measurement,
                        const JudgeSettings& settings) {
  EarlierRounds all;
  for (const Expectation& sentence : sentences) {
    if (!is_decided_by_rounds(sentence)) continue;
    SentenceTest test(sentence, subjects, settings, {});
    for (const Sources& round : rounds_that_decide(sentence, subjects, measurement))
      test.add(round);
    if (!test.values_are_known() || test.contrasts().empty()) continue;
    all.contrasts[name_in_files(sentence)] = as_kept(test.contrasts());
    if (!test.times().empty()) all.times[name_in_files(sentence)] = as_kept(test.times());
  }
  return all;
}

// Adds the run's look for sentences about stored times; there is none before the run has all the
// rounds for it.
void add_looks(const std::vector<Expectation>& sentences, std::span<const Subject> subjects,
               const Measurement& measurement, EarlierEvidence& to) {
  for (const Expectation& sentence : sentences) {
    if (!compares_stored_times(sentence)) continue;
    const auto look = look_at_stored(sentence, subjects, measurement);
    if (!look) continue;
    to.stored[name_in_files(sentence)] = {look->contrast + 0.0};
    to.stored_anchors[name_in_files(sentence)] = {look->anchor + 0.0};
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

std::string name_in_files(const Expectation& sentence) {
  return is_printable_ascii(sentence.name) ? sentence.name : hexadecimal(fnv1a(sentence.name));
}

std::span<const double> contrasts_for(const Expectation& sentence, const Contrasts& all) {
  const auto found = all.find(name_in_files(sentence));
  return found == all.end() ? std::span<const double>() : found->second;
}

bool is_decided_by_rounds(const Expectation& sentence) {
  return evidence_of(sentence) >= Evidence::timed && !names_stored(sentence);
}

bool has_sentence_to_go_on_from(const Scenario& scenario) {
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

bool is_refuted_by_earlier(const Scenario& scenario, std::span<const Subject> subjects,
                           const JudgeSettings& settings) {
  return std::any_of(
      scenario.expect.begin(), scenario.expect.end(), [&](const Expectation& sentence) {
        return is_decided_by_rounds(sentence) &&
               SentenceTest(sentence, subjects, settings, settings.earlier.expect).outcome() ==
                   Outcome::refuted;
      });
}

bool nothing_left_to_measure(const Scenario& scenario, std::span<const Subject> subjects,
                             const JudgeSettings& settings) {
  if (settings.earlier.runs == 0) return false;
  const auto outcome_of = [&](const Expectation& sentence, const EarlierRounds& earlier) {
    return SentenceTest(sentence, subjects, settings, earlier).outcome();
  };
  bool all_decided = true;
  for (const Expectation& sentence : scenario.regime) {
    if (!is_decided_by_rounds(sentence)) continue;
    const Outcome outcome = outcome_of(sentence, settings.earlier.regime);
    if (outcome == Outcome::refuted) return true;
    all_decided = all_decided && outcome != Outcome::undecided;
  }
  for (const Expectation& sentence : scenario.expect) {
    if (!is_decided_by_rounds(sentence)) continue;
    all_decided =
        all_decided && outcome_of(sentence, settings.earlier.expect) != Outcome::undecided;
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
  return !measurement.another_step && !environment_of(measurement).disturbance();
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
