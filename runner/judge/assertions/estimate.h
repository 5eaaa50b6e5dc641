// SPDX-License-Identifier: MIT
// The result of a measured assertion, in the terms that its author wrote.
#pragma once

#include <string>

#include "judge/verdict/verdict.h"
#include "scenario/assertions/expectation.h"

namespace stepgate {

// Left side / right side: of a comparison in a typical round, of a level the median of the rounds.
// One of the two is there.
double ratio_of(const AssertionVerdict&);

// From that and the verdict's sides. "a * x.metric" against "b * y.metric" is about the ratio of
// the metrics and its limit b / a, "a * x.metric" against anything else about the metric,
// everything else about left / right and 1.
Estimate estimate_of(const Expectation&, const AssertionVerdict&);

// The estimate at another left / right, such as that of total time.
double value_at(double ratio, const Estimate&, const AssertionVerdict&);

// "1.24x", "0.898 ms", "23 %"; with as many digits as tell it from the limit.
std::string value_in_words(double value, const Estimate&);
// "1.05x": all digits that the author may have written.
std::string limit_in_words(const Estimate&);

}  // namespace stepgate
