// SPDX-License-Identifier: MIT
// Decides assertions of counts: plan metrics by the plan, and exact metrics by the traced rounds,
// which must all agree. Compares values and estimates nothing.
#pragma once

#include <functional>
#include <optional>
#include <span>

#include "judge/verdict/sides.h"
#include "judge/verdict/verdict.h"
#include "measure/rounds/measurement.h"

namespace stepgate {

// Decides an assertion of plan or exact evidence and fills in its verdict. `stored` gives the
// values of metrics with `stored.`; it may be empty. Where a value is unknown, the sides stay
// absent and the reason says why.
void decide_counted(const Expectation&, std::span<const Subject>, const Measurement&,
                    const std::function<std::optional<double>(const MetricOf&)>& stored,
                    AssertionVerdict&);

}  // namespace stepgate
