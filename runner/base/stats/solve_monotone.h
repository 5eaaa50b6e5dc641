// SPDX-License-Identifier: MIT
// Where a function that only rises, or only falls, has a given value: for functions that are
// measured, hence dear and noisy. Pure arithmetic.
#pragma once

#include <functional>

namespace stepgate {

struct SolveRequest {
  double aim = 0;        // above 0
  double tolerance = 0;  // relative to the aim
  double start = 1;
  double least = 1;  // above 0
  double most = 1;
  int most_trials = 24;
};

struct Solution {
  bool found = false;
  double argument = 0;  // the argument whose value came closest
  double value = 0;
  int trials = 0;
};

// Multiplies or divides the start by four until the aim is enclosed, in both directions where the
// first trials do not tell which one leads nearer. Then interpolates on logarithmic axes, kept away
// from the ends so that every trial narrows the bracket (regula falsi with a guard). A value of NaN
// says that there is none for an argument: a few others nearby are tried. `found` is false if the
// aim is beyond the values at `least` and `most`, or if the trials are used up.
Solution solve_monotone(const std::function<double(double)>&, const SolveRequest&);

}  // namespace stepgate
