// SPDX-License-Identifier: MIT
// Decides when a measurement may stop, by the timed tests of a scenario, which get each new round
// once.
#include <algorithm>
#include <memory>
#include <vector>

#include "base/stats/e_process.h"
#include "judge/assertion_test.h"
#include "judge/judge.h"
#include "judge/judge_environment.h"
#include "judge/judge_suite.h"

namespace stepgate {
namespace {

bool is_decided_by(const Expectation& assertion, Evidence evidence) {
  return evidence_of(assertion) == evidence && !names_stored(assertion);
}

// Visits the assertions of [regime] and of [expect].
template <class Visit>
void for_each_assertion(const Scenario& scenario, const JudgeSettings& settings, Visit visit) {
  for (const Expectation& assertion : scenario.regime) visit(assertion, settings.earlier.regime);
  for (const Expectation& assertion : scenario.expect) visit(assertion, settings.earlier.expect);
}

// Returns the largest number of rounds of this run that an assertion of that evidence needs, at
// least 1. A comparison needs `of_a_comparison` rounds, and earlier rounds count.
std::int64_t own_rounds(std::int64_t of_a_comparison, Evidence evidence, const Scenario& scenario,
                        const JudgeSettings& settings) {
  std::int64_t most = 1;
  for_each_assertion(
      scenario, settings, [&](const Expectation& assertion, const EarlierRounds& earlier) {
        if (!is_decided_by(assertion, evidence)) return;
        const std::int64_t wanted = compares_two_variants(assertion)
                                        ? of_a_comparison
                                        : fewest_rounds_without_randomisation;
        most = std::max(most, wanted - std::ssize(contrasts_for(assertion, earlier.contrasts)));
      });
  return most;
}

class Watch {
 public:
  Watch(const Scenario& scenario, std::vector<Subject> subjects, const JudgeSettings& settings)
      : subjects_(std::move(subjects)),
        settings_(settings),
        fewest_rounds_(
            own_rounds(fewest_rounds(settings.beta), Evidence::timed, scenario, settings)) {
    const auto watch = [&](const std::vector<Expectation>& assertions, const EarlierRounds& earlier,
                           std::vector<AssertionTest>& tests) {
      for (const Expectation& assertion : assertions) {
        if (is_decided_by(assertion, Evidence::timed))
          tests.emplace_back(assertion, subjects_, settings_, earlier);
      }
    };
    watch(scenario.regime, settings.earlier.regime, regime_);
    watch(scenario.expect, settings.earlier.expect, expect_);
  }
  // Cannot be copied, since the tests hold references to its settings and subjects.
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;

  bool enough(const Measurement& measurement) {
    if (rounds_seen_ == 0 && measurement.environment_before) {
      environment_.add(*measurement.environment_before);
    }
    for (; rounds_seen_ < measurement.rounds.size(); ++rounds_seen_) {
      const Round& round = measurement.rounds[rounds_seen_];
      if (round.environment_after) environment_.add(*round.environment_after);
      const Sources sources{.subjects = subjects_, .round = &round, .device = &measurement.device};
      for (std::vector<AssertionTest>* tests : {&regime_, &expect_}) {
        for (AssertionTest& test : *tests) test.add(sources);
      }
    }
    // After a disturbance, no number of rounds decides a timed assertion.
    if (environment_.disturbance()) return true;
    if (std::ssize(measurement.rounds) < fewest_rounds_) return false;
    const bool outside = std::any_of(regime_.begin(), regime_.end(), [](const AssertionTest& test) {
      return test.outcome() == Outcome::fails;
    });
    return outside || (none_is_open(regime_) && none_is_open(expect_));
  }

 private:
  static bool none_is_open(const std::vector<AssertionTest>& tests) {
    return std::none_of(tests.begin(), tests.end(),
                        [](const AssertionTest& test) { return test.is_open(); });
  }

  std::vector<Subject> subjects_;
  JudgeSettings settings_;
  std::int64_t fewest_rounds_;
  EnvironmentLog environment_;
  std::vector<AssertionTest> regime_;
  std::vector<AssertionTest> expect_;
  std::size_t rounds_seen_ = 0;
};

}  // namespace

Enough enough_evidence(const Scenario& scenario, std::vector<Subject> subjects,
                       const JudgeSettings& settings) {
  // A std::function must be copyable, so its copies share one Watch.
  const auto watch = std::make_shared<Watch>(scenario, std::move(subjects), settings);
  return [watch](const Measurement& measurement) { return watch->enough(measurement); };
}

std::int64_t fewest_rounds_to_hold(const Scenario& scenario, const JudgeSettings& settings) {
  return own_rounds(fewest_rounds(settings.beta), Evidence::timed, scenario, settings);
}

std::int64_t fewest_rounds_to_refute(const Scenario& scenario, const JudgeSettings& settings) {
  return own_rounds(fewest_rounds(settings.alpha), Evidence::timed, scenario, settings);
}

// Counts must agree between rounds, so at least two rounds are needed.
std::int64_t fewest_traced_rounds_to_hold(const Scenario& scenario, const JudgeSettings& settings) {
  constexpr std::int64_t to_compare_counts = 2;
  return std::max(own_rounds(fewest_rounds(settings.beta), Evidence::traced, scenario, settings),
                  to_compare_counts);
}

std::int64_t fewest_traced_rounds(const Scenario& scenario, const JudgeSettings& settings) {
  return std::max(own_rounds(fewest_rounds(settings.alpha), Evidence::traced, scenario, settings),
                  fewest_traced_rounds_to_hold(scenario, settings));
}

JudgeSettings suite_settings(std::span<const Scenario* const> scenarios) {
  JudgeSettings settings;
  std::int64_t lines = 0;
  std::int64_t stored_lines = 0;
  for (const Scenario* scenario : scenarios) {
    if (is_planned_only(*scenario)) continue;
    const std::vector<Expectation>& expect = scenario->expect;
    lines += std::count_if(expect.begin(), expect.end(), has_error_rate);
    stored_lines += std::count_if(expect.begin(), expect.end(), compares_stored_times);
  }
  settings.suite_lines = lines;
  settings.stored_lines = std::max<std::int64_t>(stored_lines, 1);
  settings.alpha = 1 / evidence_that_refutes_a_line(lines, settings.suite_alpha);
  return settings;
}

std::optional<Forecast> forecast(const ExpectedCost& expected, const Scenario& scenario,
                                 const JudgeSettings& settings) {
  constexpr double one_percent = 0.01;
  if (expected.round.count() == 0) return std::nullopt;
  Forecast made{
      .round = expected.round,
      // A run that is compared with stored runs needs as many rounds as they have.
      .rounds_to_hold = std::max(fewest_rounds_to_hold(scenario, settings), expected.fewest_rounds),
      .rounds_to_refute = fewest_rounds_to_refute(scenario, settings),
      .rounds_for_one_percent = {},
      .rounds_that_fit = expected.most_rounds};
  if (expected.deviation > 0) {
    made.rounds_for_one_percent =
        expected_rounds(one_percent / expected.deviation, std::min(settings.alpha, settings.beta));
  }
  return made;
}

}  // namespace stepgate
