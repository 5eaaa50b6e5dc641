// SPDX-License-Identifier: MIT
// How long a segment must be for its length not to matter. A segment that ends with an empty queue
// and begins with a filling one costs its variant something that another may not pay; four times
// the length pays a quarter of it. Runs nothing itself.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "measure/measurement.h"

namespace stepgate {

// The log of each variant's time a step, over an order of segments of so many steps and its mirror.
using TimedOrder = std::function<std::vector<double>(std::int64_t steps)>;

// The shortest length, from `first` doubling up to `most`, at which the variants' ratios agree with
// those at four times the length: within a tenth of a percent, a fifth of the usual margin, or
// within three standard errors. The longest that was tried when none agrees.
Pilot choose_segment(std::int64_t first, std::int64_t most, const TimedOrder&);

// Mirrored orders a pass, when loading costs so many times what an order costs and the log-ratios
// of orders scatter so much within a load: where the variance per second is least, between 1 and 4
// (Kalibera and Jones, Rigorous Benchmarking in Reasonable Time, section 6).
std::int64_t orders_per_pass(double load_cost, double deviation);

// Standard deviation of a log-ratio of two variants over a round of so many passes.
double round_deviation(const Pilot&, std::int64_t passes);

}  // namespace stepgate
