// SPDX-License-Identifier: MIT
// Where one more run may lie, given earlier runs of the same thing: for comparing with stored
// numbers, when the thing itself cannot be run again. What the numbers mean is for others.
//
// Assumes that the runs, the new one included, are exchangeable and normal; a change of theta
// shifts the new one by theta.
#pragma once

#include <cstdint>
#include <span>

namespace stepgate {

// The new run against M earlier ones: `difference` is its distance from their mean, `scale` is
// s * sqrt(1 + 1 / M) with the standard deviation s of the earlier ones (divided by M - 1).
struct Prediction {
  std::int64_t earlier_runs = 0;
  double difference = 0;
  double deviation = 0;
  double scale = 0;
};

// At least two earlier runs: one says nothing about how runs differ.
Prediction predict(double new_run, std::span<const double> earlier_runs);

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
