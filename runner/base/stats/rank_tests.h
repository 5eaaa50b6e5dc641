// SPDX-License-Identifier: MIT
// Tests that look at the order of values only, so that outliers do not decide; and a quantile of
// Student's t. All two-sided unless said otherwise, at a level of their own each time they are
// asked.
#pragma once

#include <cstdint>
#include <span>

namespace stepgate {

// Mann and Whitney's test whether the samples differ in location. Uses the normal approximation
// with the variance corrected for ties (Lehmann, Nonparametrics, 1975, 1.4). Needs at least five
// values each, otherwise returns false.
bool two_samples_differ(std::span<const double> one, std::span<const double> other, double level);

// One-sided test whether neighbouring values are positively correlated. The lag-one correlation of
// the ranks is normal with variance 1 / n under independence (Wald and Wolfowitz 1943). Needs at
// least ten values.
bool neighbours_agree(std::span<const double> values, double level);

// The value that
// t
//  exceeds with probability `level`. `degrees` is at least 1.
double t_beyond(std::int64_t degrees, double level);

}  // namespace stepgate
