// SPDX-License-Identifier: MIT
// Compares a high percentile of two series of values by counting: in each round, how many more of
// the left side than of the right one lie beyond the percentile of both sides put together.
//
// The p-th percentile of the left side is at most that of the right one only where, beyond a
// threshold between the two, no larger share of the left side lies than of the right side; the
// percentile of the pooled values always is between the two. A percentile of a few values is their
// maximum, and its logarithm is biased where one side has rare large values; a count is not. Where
// swapping the sides changes nothing, the sign of a round's count is a fair coin, given the rounds
// before it: the threshold is made of all values so far, that round's included, and does not know
// which side they are of. Values count in units of their round, the geometric mean of the medians
// of both sides, so that a round in which everything is slower is not the only one that has a tail.
#pragma once

#include <cstddef>
#include <deque>
#include <optional>
#include <span>
#include <vector>

namespace stepgate {

// Values above `value`, and a share of those equal to it, are beyond the percentile. Together they
// are exactly the share of the pooled values that the percentile leaves.
struct TailThreshold {
  double value = 0;
  double share_of_equals = 0;
};

class TailCounts {
 public:
  // Only the last rounds of a long run are kept: at most this many values a side, but at least one
  // round.
  static constexpr std::size_t most_values_a_side = 6'000;

  // Compares the percentile of the left side with `factor` times that of the right side.
  // `percentile` is in (0, 1), such as 0.99; `factor` is positive.
  explicit TailCounts(double percentile, double factor = 1);

  // Adds a round of positive values, at least one a side. Returns its contrast: the share of the
  // left side beyond the threshold less that of the right side. It is divided by its standard
  // deviation for equal sides with independent values. If positive, the left side's tail is
  // heavier.
  double add(std::span<const double> left, std::span<const double> right);

  // The percentile of all kept values of a side, by nearest rank. Needs at least one round.
  double left_percentile() const;
  double right_percentile() const;

  // The interval of factors, left / right, that a test at half the level rejects on neither side.
  // Uses the kept rounds with the threshold of all their values. A bound is absent while too few
  // rounds can reject anything.
  struct Interval {
    std::optional<double> low;
    std::optional<double> high;
  };
  Interval interval(double level) const;

 private:
  struct Round {
    std::vector<double> left;
    std::vector<double> right;
  };

  // Multiplies the right side by the factor and divides both sides by the round's typical value.
  static Round in_own_units(const Round&, double factor);
  TailThreshold threshold_of(const std::deque<Round>& scaled) const;
  double contrast_of(const Round& scaled, const TailThreshold&) const;
  std::vector<double> contrasts_at(double factor) const;
  std::vector<double> all_of(std::vector<double> Round::*side) const;

  double percentile_;
  double factor_;
  std::deque<Round> rounds_;  // the last rounds
  std::deque<Round> scaled_;  // rounds_ after in_own_units(round, factor_)
  std::size_t values_ = 0;    // number of left values in rounds_
};

}  // namespace stepgate
