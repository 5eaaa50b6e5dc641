// SPDX-License-Identifier: MIT
// Tests that look at the order of values only, so that outliers do not decide; and a quantile of
// Student's t. All two-sided unless said otherwise, at a level of their own each time they are
// asked.
#pragma once

#include <cstdint>
#include <span>

namespace stepgate {

// Mann and Whitney's test with the normal approximation, its variance corrected for equal values
// (Lehmann, Nonparametrics, 1975, 1.4): do the samples lie in different places? At least five
// values each, otherwise false.
bool two_samples_differ(std::span<const double> one, std::span<const double> other, double level);

// One-sided: is a value like the one before it? The lag-one correlation of the ranks, which is
// normal with variance 1 / n where they are independent (Wald and Wolfowitz 1943). At least ten.
bool neighbours_agree(std::span<const double> values, double level);

// The value that |t| exceeds with probability `level`. At least one degree of freedom.
double t_beyond(std::int64_t degrees, double level);

}  // namespace stepgate
