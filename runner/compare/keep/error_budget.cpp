// SPDX-License-Identifier: MIT
#include "compare/keep/error_budget.h"

#include <cmath>

namespace stepgate {
namespace {

// The sum of 1 / (n log^2 n) over all n from 2 on.
constexpr double sum_of_shares = 2.109742801236892;

}  // namespace

double share_of_candidate(std::int64_t number) {
  const auto n = static_cast<double>(number + 1);
  const double logarithm = std::log(n);
  return 1 / (sum_of_shares * n * logarithm * logarithm);
}

double level_of_candidate(double budget, std::int64_t number, std::int64_t kept) {
  return budget * share_of_candidate(number) * static_cast<double>(kept + 1);
}

double budget_left(double budget, std::int64_t tested, std::int64_t kept) {
  double left = 1;
  for (std::int64_t number = 1; number <= tested; ++number) left -= share_of_candidate(number);
  return budget * left * static_cast<double>(kept + 1);
}

}  // namespace stepgate
