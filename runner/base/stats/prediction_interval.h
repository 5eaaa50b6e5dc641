// SPDX-License-Identifier: MIT
// Where one more run may lie, given earlier runs of the same thing: for comparing with stored
// numbers, when the thing itself cannot be run again. What the numbers mean is for others.
//
// Earlier runs come in units: what is drawn once for several of them, such as the device, makes
// these one unit, and the new run is one of a unit of its own. Assumes that units are exchangeable
// and normal, and so are runs within them; a change of theta shifts the new run by theta.
//
// unpaired_difference is for two samples of which neither is stored.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace stepgate {

// Compares a new run with M units of earlier runs; a unit counts as the mean of its runs.
// `difference` is the new run's distance from the mean of the units. Its variance is the sum of two
// estimates:
//   between  s^2 (1 + 1 / M), where s^2 is the variance of the units' means; M - 1 degrees
//   within   w^2 (1 - 1 / m), where w^2 is the variance of runs within units; N - M degrees. A mean
//            of m runs averages this noise out, a single new run does not.
struct Prediction {
  std::int64_t units = 0;
  std::int64_t runs = 0;
  double difference = 0;
  double deviation = 0;  // of single runs, each in another unit
  double between = 0;
  double within = 0;  // 0 where every unit is one run
};

// Needs at least two units, none of them empty, since one unit does not show how units differ.
Prediction predict(double new_run, std::span<const std::vector<double>> earlier_units);

// Whether the new run shows a true difference above (below) the margin. Wrong in at most the share
// `error` of comparisons whose true difference is at the margin or on its other side.
bool shows_above(const Prediction&, double margin, double error);
bool shows_below(const Prediction&, double margin, double error);

struct PredictionInterval {
  double low = 0;
  double high = 0;
};

// An interval that contains the true difference in all but the share `error` of comparisons.
PredictionInterval interval_of(const Prediction&, double error);

// The distance beyond the margin of a true difference that is shown with the given power.
double smallest_shown(const Prediction&, double error, double power);

// The difference of the means of two samples that were not taken in pairs.
struct UnpairedDifference {
  double mean = 0;  // of `after` less that of `before`
  double low = 0;   // of the two-sided interval
  double high = 0;
};

// With the interval of Welch, The generalization of "Student's" problem (1947), which takes the
// values of each sample as independent. Each needs at least two values, and not all of both equal.
UnpairedDifference unpaired_difference(std::span<const double> before,
                                       std::span<const double> after, double confidence);

}  // namespace stepgate
