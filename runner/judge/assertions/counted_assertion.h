// SPDX-License-Identifier: MIT
// Decides assertions of counts: plan metrics by the plan, exact ones by the traced rounds, in which
// they must be the same every time. Compares and never estimates.
#pragma once

#include <functional>
#include <optional>
#include <span>

#include "judge/verdict/sides.h"
#include "judge/verdict/verdict.h"
#include "measure/rounds/measurement.h"

namespace stepgate {

// An assertion of plan or exact evidence, into the verdict that names it. `stored` gives the value
// of metrics with `stored.`; it may be empty. Sides stay absent where a value is not known, with
// the reason in words.
void decide_counted(const Expectation&, std::span<const Subject>, const Measurement&,
                    const std::function<std::optional<double>(const MetricOf&)>& stored,
                    AssertionVerdict&);

}  // namespace stepgate
