// SPDX-License-Identifier: MIT
// Quantiles of a sample, by the two definitions that stepgate uses.
#pragma once

#include <span>
#include <vector>

namespace stepgate {

// Type 7 of Hyndman and Fan (Sample quantiles in statistical packages, 1996): linear between order
// statistics. `sorted` ascending and not empty; share in [0, 1].
double quantile_of_sorted(std::span<const double> sorted, double share);

// Type 7 of values in any order.
double quantile(std::vector<double> values, double share);

// The smallest value that at least `share` of the values do not exceed: always one of them. Not
// empty; share in (0, 1].
double nearest_rank(std::vector<double> values, double share);

}  // namespace stepgate
