// SPDX-License-Identifier: MIT
#include "base/stats/binomial.h"

#include <boost/math/distributions/binomial.hpp>

namespace stepgate {

RateBounds clopper_pearson(std::int64_t count, std::int64_t of, double level) {
  using Binomial = boost::math::binomial_distribution<double>;
  const auto trials = static_cast<double>(of);
  const auto successes = static_cast<double>(count);
  RateBounds bounds;
  if (count > 0) bounds.low = Binomial::find_lower_bound_on_p(trials, successes, level);
  if (count < of) bounds.high = Binomial::find_upper_bound_on_p(trials, successes, level);
  return bounds;
}

}  // namespace stepgate
