// SPDX-License-Identifier: MIT
// The differences of a recorded program and what it is compared with, as a table.
#pragma once

#include <string>
#include <vector>

#include "judge/verdict/verdict.h"

namespace stepgate {

// A row for every count that differs, for every part of the time, and of the work that differs the
// first ones, each with both values and the change. Of several processes a side has the most of a
// count, and the times of its first variant. Empty where nothing is compared or nothing differs;
// times that differ by less than a hundredth of a step are left out.
std::vector<std::vector<std::string>> reported_differences(const Verdict&);

}  // namespace stepgate
