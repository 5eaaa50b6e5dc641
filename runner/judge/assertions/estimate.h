// SPDX-License-Identifier: MIT
// The result of a measured assertion, in the terms of its author.
#pragma once

#include <optional>
#include <string>

#include "judge/verdict/verdict.h"
#include "scenario/assertions/expectation.h"

namespace stepgate {

// Left side / right side: for a comparison, in a typical round; for a level, the median of the
// rounds. The verdict must have one of the two.
double ratio_of(const AssertionVerdict&);

// Makes the estimate from this ratio and the sides of the verdict. "a * x.metric" against "b *
// y.metric" estimates the ratio of the metrics, with the limit b / a. "a * x.metric" against
// anything else estimates the metric. All other assertions estimate left / right, with the limit 1.
Estimate estimate_of(const Expectation&, const AssertionVerdict&);

// The estimate for another ratio left / right, such as that of total time.
double value_at(double ratio, const Estimate&, const AssertionVerdict&);

// The one-sided bounds, in the terms of the author, of an assertion that passes although its
// interval does not show it: there are too few rounds for an interval, or the two-sided interval
// extends beyond the limit. Otherwise nullopt.
std::optional<Bounds> bounds_that_decided(const AssertionVerdict&);
// "at least 0.994x and at most 1.009x".
std::string bounds_in_words(const Bounds&, const Estimate&);

// "1.24x", "0.898 ms", "23 %", with enough digits to differ from the limit.
std::string value_in_words(double value, const Estimate&);
// "1.05x": the limit with all digits that its author may have written.
std::string limit_in_words(const Estimate&);

}  // namespace stepgate
