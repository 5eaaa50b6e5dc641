// SPDX-License-Identifier: MIT
// A verdict and its measurement for programs: complete enough that a third party can recompute the
// contrasts from the rounds and the e-values from the contrasts.
#pragma once

#include <iosfwd>

#include "judge/verdict.h"
#include "measure/measurement.h"

namespace stepgate {

// Changes whenever a field changes its meaning or goes away.
constexpr int report_schema = 1;

// One JSON object on one line, so that a file of several is JSON Lines. Times in integer
// nanoseconds end in `_ns`; values of sides are in base units; the fingerprint and the seed are
// hexadecimal strings, since JSON numbers lose 64-bit integers. Unknown values are null.
void write_json(std::ostream&, const Verdict&, const Measurement&);

}  // namespace stepgate
