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
  double argument = 0;  // the one whose value came closest
  double value = 0;
  int trials = 0;
};

// Steps away from the start by factors of four until the aim lies in between, then interpolates on
// logarithmic axes, kept away from the ends so that every trial narrows the bracket (regula falsi
// with a guard). Not found: the aim is beyond what least or most give, or the trials are used up.
Solution solve_monotone(const std::function<double(double)>&, const SolveRequest&);

}  // namespace stepgate
