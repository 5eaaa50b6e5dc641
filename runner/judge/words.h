// SPDX-License-Identifier: MIT
// Numbers in words, the same in reasons and reports.
#pragma once

#include <string>

#include "judge/verdict.h"
#include "scenario/metric.h"

namespace stepgate {

// A value in the metric's base unit: "1.234 ms", "4.00 MiB", "12", "34.1 %", "88.5k/s".
std::string in_words(double value, MetricUnit);

// A ratio of two like things: "1.31x", and "1.003x" close to 1.
std::string factor_in_words(double ratio);

// "holds", "refuted", "undecided", "skipped", "no baseline", "not comparable".
std::string_view in_words(Outcome);

// "data wait", "optimizer state".

// A share in a sentence, to two digits: "23 %", "0.91 %", "100 %".
std::string share_in_words(double share);

// "run", "sitting", "device".
std::string_view in_words(StoredUnit);

// "idle after waits".
std::string_view in_words(TimePart);

}  // namespace stepgate
