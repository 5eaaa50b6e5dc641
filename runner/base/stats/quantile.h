// SPDX-License-Identifier: MIT
// Quantiles of a sample, by the two definitions that stepgate uses.
#pragma once

#include <span>
#include <vector>

namespace stepgate {

// Quantile of type 7 of Hyndman and Fan (Sample quantiles in statistical packages, 1996): linear
// between order statistics. `sorted` is ascending and not empty; share in [0, 1].
double quantile_of_sorted(std::span<const double> sorted, double share);

// Like quantile_of_sorted, for values in any order.
double quantile(std::vector<double> values, double share);

// The smallest of the values that is not exceeded by at least the share `share` of them. `values`
// is not empty; share in (0, 1].
double nearest_rank(std::vector<double> values, double share);

}  // namespace stepgate
