// SPDX-License-Identifier: MIT
#include "judge/assertions/estimate.h"

#include <fmt/format.h>

#include <cmath>

#include "judge/verdict/sides.h"
#include "judge/verdict/words.h"

namespace stepgate {

double ratio_of(const AssertionVerdict& verdict) {
  return verdict.timed ? verdict.timed->ratio : verdict.not_randomised->typical;
}

double value_at(double ratio, const Estimate& estimate, const AssertionVerdict& verdict) {
  return estimate.value * ratio / ratio_of(verdict);
}

namespace {

// Returns the value that corresponds to a ratio of 1. Where the right side is 0, ratios are
// relative to nearly_nothing.
double value_of_one(const Expectation& assertion, const AssertionVerdict& verdict,
                    const Estimate& estimate) {
  if (estimate.limit != 0 || !verdict.not_randomised) return estimate.limit;
  return nearly_nothing(assertion) / factor_of_single_metric(assertion.left).value_or(1);
}

}  // namespace

Estimate estimate_of(const Expectation& assertion, const AssertionVerdict& verdict) {
  Estimate estimate;
  estimate.limit = 1;
  const auto left = factor_of_single_metric(assertion.left);
  const auto right = factor_of_single_metric(assertion.right);
  if (left && right) {
    estimate.limit = *right / *left;
  } else if (left && metrics_in(assertion.right).empty()) {
    estimate.limit = verdict.right.value_or(0) / *left;
    estimate.unit = verdict.unit;
  }
  const double one = value_of_one(assertion, verdict, estimate);
  // Where both sides are 0, the value is exactly the limit.
  const auto at = [&](double ratio) { return ratio == 1 ? estimate.limit : one * ratio; };
  estimate.value = at(ratio_of(verdict));
  const std::optional<RatioInterval>& interval =
      verdict.timed ? verdict.timed->interval : std::optional(verdict.not_randomised->range);
  if (interval) {
    estimate.interval = {.low = at(interval->low), .high = at(interval->high)};
  }
  return estimate;
}

std::optional<Bounds> bounds_that_decided(const AssertionVerdict& verdict) {
  if (!verdict.timed || !verdict.estimate || verdict.outcome != Outcome::passes)
    return std::nullopt;
  const Estimate& estimate = *verdict.estimate;
  const Bounds& shown = verdict.timed->shown;
  if (!(shown.low || shown.high)) return std::nullopt;
  const bool says_it = estimate.interval &&
                       (!shown.high || estimate.interval->high <= estimate.limit) &&
                       (!shown.low || estimate.interval->low >= estimate.limit);
  if (says_it || (estimate.interval && shown.low && shown.high)) return std::nullopt;
  Bounds bounds{.level = shown.level, .low = {}, .high = {}};
  if (shown.low) bounds.low = value_at(*shown.low, estimate, verdict);
  if (shown.high) bounds.high = value_at(*shown.high, estimate, verdict);
  return bounds;
}

std::string bounds_in_words(const Bounds& bounds, const Estimate& estimate) {
  const std::string low = bounds.low ? "at least " + value_in_words(*bounds.low, estimate) : "";
  const std::string high = bounds.high ? "at most " + value_in_words(*bounds.high, estimate) : "";
  return low + (bounds.low && bounds.high ? " and " : "") + high;
}

std::string value_in_words(double value, const Estimate& estimate) {
  return told_from(value, estimate.limit, [&](double number, int more_digits) {
    return estimate.unit ? in_words(number, *estimate.unit, more_digits)
                         : factor_in_words(number, more_digits);
  });
}

std::string limit_in_words(const Estimate& estimate) {
  return estimate.unit ? in_words(estimate.limit, *estimate.unit)
                       : fmt::format("{:.6g}x", estimate.limit);
}

}  // namespace stepgate
