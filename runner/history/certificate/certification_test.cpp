// SPDX-License-Identifier: MIT
// From gates to a certificate: what a trial comes to, what its processes differ by, and when no
// certificate is granted.
#include "history/certificate/certification.h"

#include <gtest/gtest.h>

#include <cmath>

#include "support/random.h"

namespace stepgate {
namespace {

GateResult gate(Outcome outcome, double estimate = 0, double standard_error = 0) {
  return {.outcome = outcome,
          .rounds = 6,
          .gpu_seconds = 0.3,
          .round_seconds = 0.1,
          .estimate = estimate,
          .standard_error = standard_error,
          .seen = estimate,
          .site = {.kind = InjectionKind::device_spin, .step_time = std::chrono::nanoseconds(100)}};
}

const std::string identical_name(identical_trial);
const Trial& identical = trial_named(identical_name);

Certificate certificate_of(const std::vector<GateResult>& gates, double margin = 0.005) {
  Certificate certificate;
  certificate.margin = margin;
  certificate.alpha = 0.01;
  certificate.beta = 0.05;
  certificate.trials = {result_of(identical, gates)};
  return certificate;
}

// So many gates, the first of them refuted.
std::vector<GateResult> with_found(int refuted, int gates) {
  std::vector<GateResult> results;
  for (int index = 0; index < gates; ++index)
    results.push_back(gate(index < refuted ? Outcome::refuted : Outcome::holds));
  return results;
}

// The same of identical code.
Certificate with_refuted(int refuted, int gates) {
  return certificate_of(with_found(refuted, gates));
}

TEST(Certification, CountsWhatItsGatesDid) {
  const std::vector<GateResult> gates{gate(Outcome::refuted, 0.01, 0.003),
                                      gate(Outcome::holds, -0.01, 0.001),
                                      gate(Outcome::undecided, 0.03, 0.005)};
  const TrialResult trial = result_of(identical, gates);
  EXPECT_EQ(trial.gates, 3);
  EXPECT_EQ(trial.refuted, 1);
  EXPECT_EQ(trial.held, 1);
  EXPECT_DOUBLE_EQ(trial.seen.value(), 0.01);  // the median
  EXPECT_DOUBLE_EQ(trial.estimate, 0.01);
  EXPECT_DOUBLE_EQ(trial.spread.value(), 0.02);
  EXPECT_DOUBLE_EQ(trial.spread_by_rounds, std::sqrt((9e-6 + 1e-6 + 25e-6) / 3));
  EXPECT_DOUBLE_EQ(trial.rounds_mean, 6);
  EXPECT_DOUBLE_EQ(trial.gpu_seconds_mean, 0.3);
  const RateBounds bounds = clopper_pearson(1, 3, 0.05);
  EXPECT_DOUBLE_EQ(trial.refuted_rate.low, bounds.low);
  EXPECT_DOUBLE_EQ(trial.refuted_rate.high, bounds.high);
}

TEST(Certification, OfOneGateKnowsNoSpread) {
  const TrialResult trial = result_of(identical, std::vector{gate(Outcome::holds, 0.01, 0.003)});
  EXPECT_FALSE(trial.spread);
  EXPECT_FALSE(between_processes(trial));
}

// Planted: rounds of one process scatter by one deviation, processes by another.
TEST(Certification, TakesWhatTheRoundsExplainOutOfTheSpread) {
  constexpr std::uint64_t seed = 7;
  constexpr int processes = 2000;
  constexpr double by_rounds = 0.003;
  constexpr double three_standard_errors = 0.05;  // of a deviation of so many draws, relative
  for (const double planted : {0.0, 0.002, 0.01}) {
    Random random(seed);
    std::vector<GateResult> gates;
    for (int process = 0; process < processes; ++process) {
      const double estimate = planted * random.normal() + by_rounds * random.normal();
      gates.push_back(gate(Outcome::holds, estimate, by_rounds));
    }
    const TrialResult trial = result_of(identical, gates);
    const double total = std::hypot(planted, by_rounds);
    EXPECT_NEAR(trial.spread.value(), total, three_standard_errors * total) << "seed " << seed;
    // Where there is nothing, a small rest of the two squares is left.
    const double tolerance = planted == 0 ? std::sqrt(2 * three_standard_errors) * by_rounds
                                          : three_standard_errors * total * total / planted;
    EXPECT_NEAR(between_processes(trial).value(), planted, tolerance) << "seed " << seed;
  }
}

// Whatever ends a gate, its estimate is of as many rounds as that of any other.
TEST(Certification, FindsNoSpreadInGatesThatEndWhenTheirRoundsAgree) {
  Random random(13);
  std::vector<GateResult> gates;
  for (int process = 0; process < 1000; ++process) {
    Verdict verdict;
    verdict.sentences.emplace_back().timed.emplace();
    std::vector<double>& contrasts = verdict.sentences.front().timed->contrasts;
    double sum = 0;
    do {
      contrasts.push_back(0.003 * random.normal());
      sum += contrasts.back();
    } while (contrasts.size() < 40 && (contrasts.size() < 6 || sum < 0.0035 * 6));
    Measurement measurement;
    measurement.rounds.resize(contrasts.size());
    gates.push_back(gate_result(verdict, measurement, 0));
  }
  const TrialResult trial = result_of(identical, gates);
  EXPECT_NEAR(trial.spread.value(), 0.003 / std::sqrt(5), 0.1 * 0.003 / std::sqrt(5));
  EXPECT_LT(between_processes(trial).value(), 0.0004);
  EXPECT_LT(trial.rounds_mean, 40);
}

TEST(Certification, HasNoPowerWhereFewSlowdownsAreFound) {
  const auto found = [](int refuted, int gates) {
    return result_of(trial_named("1 % slower"), with_found(refuted, gates));
  };
  EXPECT_TRUE(has_no_power(found(0, 40)));
  EXPECT_TRUE(has_no_power(found(5, 40)));
  EXPECT_FALSE(has_no_power(found(0, 3))) << "too few to tell";
  EXPECT_FALSE(has_no_power(found(30, 40)));
}

TEST(Certification, GrantsWhatAlphaExplains) {
  EXPECT_TRUE(is_granted(with_refuted(0, 20)));
  EXPECT_TRUE(is_granted(with_refuted(1, 20)));
  EXPECT_FALSE(is_granted(with_refuted(2, 20)));
  EXPECT_TRUE(is_granted(with_refuted(3, 100)));
  EXPECT_FALSE(is_granted(with_refuted(4, 100)));
}

TEST(Certification, GrantsNothingForTooFewProcessesOrNoIdenticalCode) {
  EXPECT_FALSE(is_granted(with_refuted(0, fewest_processes - 1)));
  Certificate other = with_refuted(0, 100);
  other.trials.front().name = "1 % slower";
  EXPECT_FALSE(is_granted(other));
  EXPECT_FALSE(smallest_margin(other));
}

// One more process is beyond it in alpha of all cases.
TEST(Certification, NamesTheMarginThatProcessesAloneSeldomReach) {
  constexpr std::uint64_t seed = 11;
  constexpr double deviation = 0.004;
  constexpr int certificates = 20'000;
  Random random(seed);
  int beyond = 0;
  for (int index = 0; index < certificates; ++index) {
    std::vector<GateResult> gates;
    for (int process = 0; process < fewest_processes; ++process)
      gates.push_back(gate(Outcome::holds, deviation * random.normal()));
    // Less its own mean, which is not zero where identical code is not quite identical.
    const Certificate certificate = certificate_of(gates);
    const double next = deviation * random.normal() - certificate.trials.front().estimate;
    beyond += next > std::log1p(smallest_margin(certificate).value());
  }
  EXPECT_NEAR(beyond / static_cast<double>(certificates), 0.01, 0.0021) << "seed " << seed;
}

TEST(Certification, InjectsWhereMostGatesSawTheBottleneck) {
  std::vector<GateResult> gates(3, gate(Outcome::holds));
  gates[1].site = {.kind = InjectionKind::host_delay, .step_time = std::chrono::nanoseconds(300)};
  gates[2].site.step_time = std::chrono::nanoseconds(110);
  EXPECT_EQ(injection_site_of(gates).kind, InjectionKind::device_spin);
  EXPECT_EQ(injection_site_of(gates).step_time.count(), 110);
  gates[0].site.kind = InjectionKind::host_delay;
  EXPECT_EQ(injection_site_of(gates).kind, InjectionKind::host_delay);
}

}  // namespace
}  // namespace stepgate
