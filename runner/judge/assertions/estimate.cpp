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
