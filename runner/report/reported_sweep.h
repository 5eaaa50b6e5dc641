// SPDX-License-Identifier: MIT
// The points of a [sweep] side by side: a row for each value of the knob, and where the variants'
// curves cross.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "report/report.h"

namespace stepgate {

// The sweeps among the scenarios, which are decided in that order. A file of which one point was
// asked for is none.
std::vector<ReportedSweep> reported_sweeps(std::span<const Scenario* const>,
                                           std::span<const ReportedScenario> decided);

// The values of the knob between which one variant stops being the faster one, in words:
// "baseline and fix cross between batch.size 8 and 32, at about 17". Means that differ by less than
// 2 % count as equal. The value between is interpolated in the logarithms of both.
std::vector<std::string> crossings_of(const ReportedSweep&);

}  // namespace stepgate
