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

// Values above `value` are beyond the percentile, and so is a share of the values equal to it.
// Together they are exactly the share of the pool beyond the percentile.
struct TailThreshold {
  double value = 0;
  double share_of_equals = 0;
};

class TailCounts {
 public:
  // Only the last rounds of a long run are remembered, so many values a side or one round.
  static constexpr std::size_t most_values_a_side = 6'000;

  // `percentile` in (0, 1): 0.99. Which percentile of the left side is compared with `factor` times
  // that of the right one, positive.
  explicit TailCounts(double percentile, double factor = 1);

  // A round's values, positive, at least one a side. Its contrast: the share of the left side
  // beyond the threshold less that of the right side, over the standard deviation that it has where
  // both are equal and values do not depend on each other. Positive: the left side's tail is
  // heavier.
  double add(std::span<const double> left, std::span<const double> right);

  // These are of the values so far, by nearest rank. There is at least one round.
  double left_percentile() const;
  double right_percentile() const;

  // The factors with which the test of these rounds, at the threshold of all values, would reject
  // neither side at half the level; a side is absent while too few rounds can reject anything.
  // About left / right, both as they were added.
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

  // In units of the round, with the right side times the factor.
  static Round in_own_units(const Round&, double factor);
  TailThreshold threshold_of(const std::deque<Round>& scaled) const;
  double contrast_of(const Round& scaled, const TailThreshold&) const;
  std::vector<double> contrasts_at(double factor) const;
  std::vector<double> all_of(std::vector<double> Round::*side) const;

  double percentile_;
  double factor_;
  std::deque<Round> rounds_;  // the last ones
  std::deque<Round> scaled_;  // the same in their own units, at the factor that is compared with
  std::size_t values_ = 0;    // of their left sides
};

}  // namespace stepgate
