// SPDX-License-Identifier: MIT
// Values of metrics in words, the same in reasons and reports.
#pragma once

#include <string>

#include "scenario/assertions/metric.h"

namespace stepgate {

// Writes a value given in the metric's base unit: "1.234 ms", "4 MiB", "12", "34.1 %", "88.5k/s".
// `more_digits` adds significant digits.
std::string in_words(double value, MetricUnit, int more_digits = 0);

}  // namespace stepgate
