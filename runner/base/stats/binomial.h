// SPDX-License-Identifier: MIT
// Conclusions about a rate from a count of events in a number of trials.
#pragma once

#include <cstdint>

namespace stepgate {

struct RateBounds {
  double low = 0;
  double high = 1;
};

// Confidence bounds of a rate (Clopper and Pearson, The use of confidence or fiducial limits,
// 1934). Each bound is wrong with probability at most `level`. `of` is at least 1, `count` from 0
// to `of`.
RateBounds clopper_pearson(std::int64_t count, std::int64_t of, double level);

}  // namespace stepgate
