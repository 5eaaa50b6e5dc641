// SPDX-License-Identifier: MIT
#include "judge/gate_series.h"

#include <cmath>

#include "support/require.h"

namespace stepgate {
namespace {

constexpr double power = 0.95;
constexpr std::int64_t fewest_gates = 20;

bool is_refuted(std::span<const double> contrasts, double slowdown, double alpha) {
  RobustScale scale;
  EProcess slower(Direction::above, 0);
  for (const double contrast : contrasts) {
    const double slowed = contrast + slowdown;
    slower.bet(slowed, scale.value());
    if (slower.value() >= 1 / alpha) return true;
    scale.add(slowed);
  }
  return false;
}

}  // namespace

GateSeries::GateSeries(const Expectation& sentence, std::span<const StepPlan> plans,
                       const JudgeSettings& settings, std::int64_t gates, std::int64_t most_rounds)
    : sentence_(sentence),
      plans_(plans),
      settings_(settings),
      gates_(static_cast<std::size_t>(gates)),
      most_rounds_(most_rounds),
      test_(sentence, settings.alpha, settings.beta) {}

bool GateSeries::add(const Measurement& measurement) {
  for (; rounds_seen_ < measurement.rounds.size(); ++rounds_seen_) {
    const auto contrast = contrast_of(sentence_, {.plans = plans_,
                                                  .counted = settings_.counted,
                                                  .round = &measurement.rounds[rounds_seen_]});
    require(contrast.has_value(), "a gate compares times, which every timed round has");
    add(*contrast);
  }
  return results_.size() >= gates_;
}

void GateSeries::add(double contrast) {
  contrasts_.push_back(contrast);
  if (results_.size() >= gates_) return;
  test_.add(contrast);
  ++rounds_of_gate_;
  if (test_.outcome() == Outcome::undecided && rounds_of_gate_ < most_rounds_) return;
  results_.push_back({.outcome = test_.outcome(), .rounds = rounds_of_gate_});
  test_ = TimedSentence(sentence_, settings_.alpha, settings_.beta);
  rounds_of_gate_ = 0;
}

std::optional<double> smallest_provable(std::span<const double> contrasts, std::int64_t rounds,
                                        double alpha) {
  const std::int64_t gates = rounds < 1 ? 0 : std::ssize(contrasts) / rounds;
  if (gates < fewest_gates) return std::nullopt;
  const auto enough_refuted = [&](double slowdown) {
    std::int64_t refuted = 0;
    for (std::int64_t gate = 0; gate < gates; ++gate) {
      refuted += is_refuted(contrasts.subspan(static_cast<std::size_t>(gate * rounds),
                                              static_cast<std::size_t>(rounds)),
                            slowdown, alpha);
    }
    return static_cast<double>(refuted) >= power * static_cast<double>(gates);
  };
  double too_small = 0;
  double enough = std::log(2);
  if (!enough_refuted(enough)) return std::nullopt;
  constexpr int halvings = 40;
  for (int halving = 0; halving < halvings; ++halving) {
    const double middle = 0.5 * (too_small + enough);
    (enough_refuted(middle) ? enough : too_small) = middle;
  }
  return std::expm1(enough);
}

}  // namespace stepgate
