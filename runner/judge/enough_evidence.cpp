// SPDX-License-Identifier: MIT
// When a measurement may stop: the timed tests of a scenario, fed each new round once.
#include <algorithm>
#include <memory>
#include <vector>

#include "judge/judge.h"
#include "judge/judge_environment.h"
#include "judge/timed_sentence.h"
#include "stats/e_process.h"

namespace stepgate {
namespace {

// An interval's two ends each need evidence at half the level.
std::int64_t rounds_for_intervals(const Scenario& scenario) {
  return fewest_rounds((1 - scenario.measure.confidence) / 2);
}

bool is_timed(const Expectation& sentence) {
  return evidence_of(sentence) == Evidence::timed;
}

bool is_traced(const Expectation& sentence) {
  return evidence_of(sentence) == Evidence::traced;
}

bool has_traced_sentence(const Scenario& scenario) {
  return std::any_of(scenario.regime.begin(), scenario.regime.end(), is_traced) ||
         std::any_of(scenario.expect.begin(), scenario.expect.end(), is_traced);
}

bool has_timed_sentence(const Scenario& scenario) {
  return std::any_of(scenario.regime.begin(), scenario.regime.end(), is_timed) ||
         std::any_of(scenario.expect.begin(), scenario.expect.end(), is_timed);
}

// What earlier runs leave of these rounds: the sentence that they know least of counts.
std::int64_t own_rounds(std::int64_t rounds, const Scenario& scenario,
                        const JudgeSettings& settings, bool (*of_kind)(const Expectation&)) {
  std::optional<std::int64_t> earlier;
  const auto count = [&](const std::vector<Expectation>& sentences, const Contrasts& contrasts) {
    for (const Expectation& sentence : sentences) {
      if (!of_kind(sentence) || !is_decided_by_rounds(sentence)) continue;
      const auto known = std::ssize(contrasts_for(sentence, contrasts));
      earlier = std::min(earlier.value_or(known), known);
    }
  };
  count(scenario.regime, settings.earlier.regime);
  count(scenario.expect, settings.earlier.expect);
  return std::max<std::int64_t>(rounds - earlier.value_or(0), 1);
}

class Watch {
 public:
  Watch(const Scenario& scenario, std::span<const StepPlan> plans, const JudgeSettings& settings)
      : plans_(plans), counted_(settings.counted) {
    watch(scenario.regime, regime_, settings, settings.earlier.regime);
    watch(scenario.expect, expect_, settings, settings.earlier.expect);
    const bool any_timed = !regime_.empty() || !expect_.empty();
    if (any_timed) {
      fewest_rounds_ = own_rounds(rounds_for_intervals(scenario), scenario, settings, is_timed);
    }
  }

  bool enough(const Measurement& measurement) {
    if (rounds_seen_ == 0 && measurement.environment_before) {
      environment_.add(*measurement.environment_before);
    }
    for (; rounds_seen_ < measurement.rounds.size(); ++rounds_seen_) {
      const auto& reading = measurement.rounds[rounds_seen_].environment_after;
      if (reading) environment_.add(*reading);
      add(measurement.rounds[rounds_seen_], regime_);
      add(measurement.rounds[rounds_seen_], expect_);
    }
    // Whatever more rounds say, no timed sentence will be decided.
    if (environment_.disturbance()) return true;
    if (std::ssize(measurement.rounds) < fewest_rounds_) return false;
    const bool outside = std::any_of(regime_.begin(), regime_.end(), [](const Watched& watched) {
      return watched.test.outcome() == Outcome::refuted;
    });
    return outside || (all_decided(regime_) && all_decided(expect_));
  }

 private:
  struct Watched {
    const Expectation* sentence;
    TimedSentence test;
    bool decidable;  // false once a value is unknown: more rounds will not tell
  };

  static void watch(const std::vector<Expectation>& sentences, std::vector<Watched>& watched,
                    const JudgeSettings& settings, const Contrasts& earlier) {
    for (const Expectation& sentence : sentences) {
      if (!is_timed(sentence)) continue;
      watched.push_back({.sentence = &sentence,
                         .test = continued_test(sentence, settings.alpha, settings.beta, earlier),
                         .decidable = true});
    }
  }

  void add(const Round& round, std::vector<Watched>& watched) const {
    for (Watched& one : watched) {
      const auto contrast =
          contrast_of(*one.sentence, {.plans = plans_, .counted = counted_, .round = &round});
      one.decidable = one.decidable && contrast.has_value();
      if (one.decidable) one.test.add(*contrast);
    }
  }

  static bool all_decided(const std::vector<Watched>& watched) {
    return std::all_of(watched.begin(), watched.end(), [](const Watched& one) {
      return !one.decidable || one.test.outcome() != Outcome::undecided;
    });
  }

  std::span<const StepPlan> plans_;
  Counted counted_;
  EnvironmentLog environment_;
  std::vector<Watched> regime_;
  std::vector<Watched> expect_;
  std::int64_t fewest_rounds_ = 1;
  std::size_t rounds_seen_ = 0;
};

}  // namespace

Enough enough_evidence(const Scenario& scenario, std::span<const StepPlan> plans,
                       const JudgeSettings& settings) {
  // A std::function must be copyable; its copies are the same watch.
  const auto watch = std::make_shared<Watch>(scenario, plans, settings);
  return [watch](const Measurement& measurement) { return watch->enough(measurement); };
}

std::int64_t fewest_rounds_to_hold(const Scenario& scenario, const JudgeSettings& settings) {
  if (!has_timed_sentence(scenario)) return 1;
  return own_rounds(std::max(fewest_rounds(settings.beta), rounds_for_intervals(scenario)),
                    scenario, settings, is_timed);
}

std::int64_t fewest_rounds_to_decide(const Scenario& scenario, const JudgeSettings& settings) {
  if (!has_timed_sentence(scenario)) return 1;
  const std::int64_t fewest = std::max({fewest_rounds(settings.alpha), fewest_rounds(settings.beta),
                                        rounds_for_intervals(scenario)});
  return own_rounds(fewest, scenario, settings, is_timed);
}

std::int64_t fewest_traced_rounds_to_hold(const Scenario& scenario, const JudgeSettings& settings) {
  // A count that differs from one round to the next is none, and one round cannot tell.
  constexpr std::int64_t to_compare_counts = 2;
  if (!has_traced_sentence(scenario)) return to_compare_counts;
  const std::int64_t fewest =
      std::max(fewest_rounds(settings.beta), rounds_for_intervals(scenario));
  return std::max(own_rounds(fewest, scenario, settings, is_traced), to_compare_counts);
}

std::int64_t fewest_traced_rounds(const Scenario& scenario, const JudgeSettings& settings) {
  const std::int64_t to_hold = fewest_traced_rounds_to_hold(scenario, settings);
  if (!has_traced_sentence(scenario)) return to_hold;
  return std::max(own_rounds(fewest_rounds(settings.alpha), scenario, settings, is_traced),
                  to_hold);
}

JudgeSettings suite_settings(std::span<const Scenario* const> scenarios, Counted counted) {
  JudgeSettings settings;
  settings.counted = std::move(counted);
  std::int64_t lines = 0;
  for (const Scenario* scenario : scenarios) {
    lines += std::count_if(
        scenario->expect.begin(), scenario->expect.end(),
        [](const Expectation& sentence) { return evidence_of(sentence) >= Evidence::timed; });
  }
  settings.suite_lines = std::max<std::int64_t>(lines, 1);
  if (lines > 1) settings.alpha = settings.suite_alpha / 2 / static_cast<double>(lines);
  return settings;
}

}  // namespace stepgate
