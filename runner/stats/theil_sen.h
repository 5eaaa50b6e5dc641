// SPDX-License-Identifier: MIT
// A slope that up to 29 % of the points cannot move.
#pragma once

#include <span>
#include <utility>

namespace stepgate {

// The median of the slopes of all pairs of points (Sen, Estimates of the regression coefficient
// based on Kendall's tau, 1968), the upper one of an even number; 0 for fewer than two points. Of
// points (x, y) that all differ in x.
double theil_sen_slope(std::span<const std::pair<double, double>> points);

}  // namespace stepgate
