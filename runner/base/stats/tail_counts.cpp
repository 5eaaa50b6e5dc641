// SPDX-License-Identifier: MIT
#include "base/stats/tail_counts.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/require.h"
#include "base/stats/e_process.h"
#include "base/stats/quantile.h"

namespace stepgate {
namespace {

double share_beyond(std::span<const double> values, const TailThreshold& threshold) {
  double beyond = 0;
  for (const double value : values) {
    if (value > threshold.value) beyond += 1;
    if (value == threshold.value) beyond += threshold.share_of_equals;
  }
  return beyond / static_cast<double>(values.size());
}

void append(std::span<const double> more, std::vector<double>& all) {
  all.insert(all.end(), more.begin(), more.end());
}

double log_evidence(std::span<const double> contrasts, Direction direction) {
  EProcess process(direction, 0);
  for (const double contrast : contrasts) process.bet(contrast, 1);
  return process.log_value();
}

}  // namespace

TailCounts::TailCounts(double percentile, double factor)
    : percentile_(percentile), factor_(factor) {
  require(percentile > 0 && percentile < 1 && factor > 0, "a percentile has values beyond it");
}

TailCounts::Round TailCounts::in_own_units(const Round& round, double factor) {
  Round scaled = round;
  for (double& value : scaled.right) value *= factor;
  const double unit = std::sqrt(nearest_rank(scaled.left, 0.5) * nearest_rank(scaled.right, 0.5));
  for (std::vector<double>* side : {&scaled.left, &scaled.right}) {
    for (double& value : *side) value /= unit;
  }
  return scaled;
}

TailThreshold TailCounts::threshold_of(const std::deque<Round>& scaled) const {
  std::vector<double> pool;
  for (const Round& round : scaled) {
    append(round.left, pool);
    append(round.right, pool);
  }
  const double wanted = (1 - percentile_) * static_cast<double>(pool.size());
  TailThreshold threshold{.value = nearest_rank(pool, percentile_)};
  double above = 0;
  double equal = 0;
  for (const double value : pool) {
    above += value > threshold.value ? 1 : 0;
    equal += value == threshold.value ? 1 : 0;
  }
  threshold.share_of_equals = std::clamp((wanted - above) / equal, 0.0, 1.0);
  return threshold;
}

// The difference of the shares beyond the threshold, in standard deviations under equal sides.
double TailCounts::contrast_of(const Round& round, const TailThreshold& threshold) const {
  const double variance =
      percentile_ * (1 - percentile_) *
      (1 / static_cast<double>(round.left.size()) + 1 / static_cast<double>(round.right.size()));
  return (share_beyond(round.left, threshold) - share_beyond(round.right, threshold)) /
         std::sqrt(variance);
}

double TailCounts::add(std::span<const double> left, std::span<const double> right) {
  require(!left.empty() && !right.empty(), "a round has values of both sides");
  rounds_.push_back({.left = {left.begin(), left.end()}, .right = {right.begin(), right.end()}});
  scaled_.push_back(in_own_units(rounds_.back(), factor_));
  values_ += left.size();
  while (values_ > most_values_a_side && rounds_.size() > 1) {
    values_ -= rounds_.front().left.size();
    rounds_.pop_front();
    scaled_.pop_front();
  }
  return contrast_of(scaled_.back(), threshold_of(scaled_));
}

std::vector<double> TailCounts::all_of(std::vector<double> Round::*side) const {
  std::vector<double> all;
  for (const Round& round : rounds_) append(round.*side, all);
  return all;
}

double TailCounts::left_percentile() const {
  return nearest_rank(all_of(&Round::left), percentile_);
}

double TailCounts::right_percentile() const {
  return nearest_rank(all_of(&Round::right), percentile_);
}

std::vector<double> TailCounts::contrasts_at(double factor) const {
  std::deque<Round> scaled;
  for (const Round& round : rounds_) scaled.push_back(in_own_units(round, factor));
  const TailThreshold threshold = threshold_of(scaled);
  std::vector<double> contrasts;
  for (const Round& round : scaled) contrasts.push_back(contrast_of(round, threshold));
  return contrasts;
}

TailCounts::Interval TailCounts::interval(double level) const {
  const auto [least_left, most_left] = std::ranges::minmax(all_of(&Round::left));
  const auto [least_right, most_right] = std::ranges::minmax(all_of(&Round::right));
  const double lowest = std::log(least_left / most_right) - 1e-3;
  const double highest = std::log(most_left / least_right) + 1e-3;
  const double limit = std::log(2 / level);
  const auto rejects = [&](double log_factor, Direction direction) {
    return log_evidence(contrasts_at(std::exp(log_factor)), direction) >= limit;
  };
  // Finds by bisection the limit between a rejected and a kept factor.
  const auto edge = [&](double rejected, double kept, Direction direction) {
    constexpr int halvings = 24;
    for (int halving = 0; halving < halvings; ++halving) {
      const double middle = 0.5 * (rejected + kept);
      (rejects(middle, direction) ? rejected : kept) = middle;
    }
    return std::exp(rejected);
  };
  Interval interval;
  const double between = std::log(left_percentile() / right_percentile());
  if (rejects(lowest, Direction::above)) interval.low = edge(lowest, between, Direction::above);
  if (rejects(highest, Direction::below)) interval.high = edge(highest, between, Direction::below);
  return interval;
}

}  // namespace stepgate
