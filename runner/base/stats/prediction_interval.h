// SPDX-License-Identifier: MIT
// Where one more run may lie, given earlier runs of the same thing: for comparing with stored
// numbers, when the thing itself cannot be run again. What the numbers mean is for others.
//
// Earlier runs come in units: what is drawn once for several of them, such as the device, makes
// these one unit, and the new run is one of a unit of its own. Assumes that units are exchangeable
// and normal, and so are runs within them; a change of theta shifts the new run by theta.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace stepgate {

// The new run against the M units of earlier ones, each worth the mean of its runs: `difference` is
// its distance from the mean of the units. The variance of that is the sum of two estimates:
//   between  s^2 (1 + 1 / M), with the variance s^2 of the units' means, of M - 1 degrees
//   within   what a single run differs by and the mean of a unit's m runs does not any more:
//            w^2 (1 - 1 / m), with the variance w^2 of runs within units, of N - M degrees
struct Prediction {
  std::int64_t units = 0;
  std::int64_t runs = 0;
  double difference = 0;
  double deviation = 0;  // of single runs, each of a unit of its own
  double between = 0;
  double within = 0;  // 0 where every unit is one run
};

// At least two units, none of them empty: one says nothing about how they differ.
Prediction predict(double new_run, std::span<const std::vector<double>> earlier_units);

// Whether the new run shows a true difference above (below) the margin. Wrong in at most the share
// `error` of all such comparisons when the true difference is at the margin or on its other side.
bool shows_above(const Prediction&, double margin, double error);
bool shows_below(const Prediction&, double margin, double error);

struct PredictionInterval {
  double low = 0;
  double high = 0;
};

// Holds the true difference in all but the share `error` of all comparisons.
PredictionInterval interval_of(const Prediction&, double error);

// How far beyond the margin a true difference must lie to be shown with the given power.
double smallest_shown(const Prediction&, double error, double power);

}  // namespace stepgate
