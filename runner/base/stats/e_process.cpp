// SPDX-License-Identifier: MIT
// The bets, their scale and their inversion.
#include "base/stats/e_process.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/stats/quantile.h"

namespace stepgate {
namespace {

// Paired block means of recorded H200 runs scatter by 0.05 to 0.1 % on busy shapes and by 2 to 5 %
// on launch-bound ones. The prior lies between and weighs as much as one round. Any value is valid;
// this one decides the recorded slowdowns soonest.
constexpr double prior_scale = 0.005;
constexpr double prior_weight = 1;
// 0.01 %: smaller differences come from the clock, not from the step.
constexpr double smallest_scale = 1e-4;
// Ratio of a normal distribution's standard deviation to its median absolute deviation.
constexpr double normal_consistency = 1.4826;

double log_evidence(std::span<const double> contrasts, std::span<const double> scales,
                    Direction direction, double margin) {
  EProcess process(direction, margin);
  for (std::size_t round = 0; round < contrasts.size(); ++round) {
    process.bet(contrasts[round], scales[round]);
  }
  return process.log_value();
}

// Finds by bisection where an increasing function crosses zero between `low` and `high`.
template <class Function>
double crossing(Function&& function, double low, double high) {
  constexpr int halvings = 60;
  for (int halving = 0; halving < halvings; ++halving) {
    const double middle = 0.5 * (low + high);
    (function(middle) < 0 ? low : high) = middle;
  }
  return 0.5 * (low + high);
}

}  // namespace

void RobustScale::add(double contrast) {
  sorted_.add(contrast);
}

double RobustScale::value() const {
  if (sorted_.size() < 2) return prior_scale;
  const double deviation = upper_median_deviation(sorted_, median_of(sorted_));
  const double weight = static_cast<double>(sorted_.size() - 1);
  const double scale = (prior_weight * prior_scale + weight * normal_consistency * deviation) /
                       (prior_weight + weight);
  return std::max(scale, smallest_scale);
}

std::vector<double> predictable_scales(std::span<const double> contrasts) {
  RobustScale scale;
  std::vector<double> scales;
  scales.reserve(contrasts.size());
  for (const double contrast : contrasts) {
    scales.push_back(scale.value());
    scale.add(contrast);
  }
  return scales;
}

void EProcess::bet(double contrast, double scale) {
  const double distance = direction_ == Direction::above ? contrast - margin_ : margin_ - contrast;
  for (std::size_t index = 0; index < components_.size(); ++index) {
    Component& component = components_[index];
    component.product *= 1 + stake * std::tanh(bet_multipliers[index] * distance / scale);
    if (component.product < 1e-100 || component.product > 1e100) {
      component.logarithm += std::log(component.product);
      component.product = 1;
    }
  }
}

double EProcess::log_value() const {
  std::array<double, bet_multipliers.size()> logarithms{};
  for (std::size_t index = 0; index < components_.size(); ++index) {
    logarithms[index] = components_[index].logarithm + std::log(components_[index].product);
  }
  const double largest = *std::max_element(logarithms.begin(), logarithms.end());
  double sum = 0;
  for (std::size_t index = 0; index < logarithms.size(); ++index) {
    sum += bet_weights[index] * std::exp(logarithms[index] - largest);
  }
  return largest + std::log(sum);
}

double EProcess::value() const {
  return std::min(std::exp(log_value()), std::numeric_limits<double>::max());
}

std::int64_t fewest_rounds(double level) {
  return static_cast<std::int64_t>(std::ceil(-std::log(level) / std::log1p(stake)));
}

std::optional<double> expected_rounds(double signal_to_noise, double level) {
  const double growth = std::min(0.5 * signal_to_noise * signal_to_noise, std::log1p(stake));
  // Approximates the mixture by the bet nearest to the effect. When all bets saturate, they agree
  // and the mixture costs nothing.
  std::size_t nearest = 0;
  for (std::size_t index = 1; index < bet_multipliers.size(); ++index) {
    if (signal_to_noise >= std::sqrt(bet_multipliers[index - 1] * bet_multipliers[index])) {
      nearest = index;
    }
  }
  const double mixture = growth < 0.5 ? -std::log(bet_weights[nearest]) : 0.0;
  const double rounds = (mixture - std::log(level)) / growth;
  if (!(rounds < 1e6)) return std::nullopt;
  return std::max(std::ceil(rounds), static_cast<double>(fewest_rounds(level)));
}

ConfidenceSequence confidence_sequence(std::span<const double> contrasts, double level) {
  return confidence_sequence(contrasts, predictable_scales(contrasts), level);
}

ConfidenceSequence confidence_sequence(std::span<const double> contrasts,
                                       std::span<const double> scales, double level) {
  const auto [least, most] = std::minmax_element(contrasts.begin(), contrasts.end());
  // Beyond this distance every bet is saturated and the evidence does not change any more.
  const double reach = 100 * *std::max_element(scales.begin(), scales.end());
  const double lowest = *least - reach;
  const double highest = *most + reach;
  const double limit = std::log(2 / level);
  const auto above = [&](double margin) {
    return log_evidence(contrasts, scales, Direction::above, margin);
  };
  const auto below = [&](double margin) {
    return log_evidence(contrasts, scales, Direction::below, margin);
  };
  ConfidenceSequence sequence;
  sequence.centre =
      crossing([&](double margin) { return below(margin) - above(margin); }, lowest, highest);
  if (above(lowest) >= limit) {
    sequence.low = crossing([&](double margin) { return limit - above(margin); }, lowest, highest);
  }
  if (below(highest) >= limit) {
    sequence.high = crossing([&](double margin) { return below(margin) - limit; }, lowest, highest);
  }
  return sequence;
}

}  // namespace stepgate
