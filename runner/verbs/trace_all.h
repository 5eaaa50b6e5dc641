// SPDX-License-Identifier: MIT
// The tracing process of a run: the same program once more, before anything is timed and gone by
// then, since a process that traces once is slow for good.
#pragma once

#include <vector>

#include "measure/traced.h"
#include "verbs/planned.h"

namespace stepgate {

// What was traced of each scenario, in their order. The process failing is no error of the run:
// every scenario without a trace says why.
std::vector<Traced> trace_all(const Arguments&, const std::vector<Planned>&, std::uint64_t seed);

// The knobs that were calibrated, as the scenarios must be planned with them.
void apply_calibrations(std::vector<Planned>&, const Arguments&, std::uint64_t seed);

}  // namespace stepgate
