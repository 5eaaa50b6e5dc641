// SPDX-License-Identifier: MIT
// A verdict and its measurement for programs: complete enough that a third party can recompute the
// contrasts from the rounds, the e-values from the contrasts and every outcome, the suite's
// included, from those. ci/recompute.py does, and tests/cli/recompute_test.cpp holds it to
// simulated suites; its first lines say what it has to believe.
#pragma once

#include <iosfwd>

#include "judge/judge_suite.h"
#include "judge/verdict/verdict.h"
#include "measure/rounds/measurement.h"
#include "measure/wall_times.h"
#include "report/run_info.h"

namespace stepgate {

// Version of docs/json_schema.json, which says what every field is. It changes whenever a field
// changes its meaning, comes or goes away.
constexpr int report_schema = 4;

// One JSON object on one line, so that a file of several is JSON Lines. Times in integer
// nanoseconds end in `_ns`; values of sides are in base units; the fingerprint and the seed are
// hexadecimal strings, since JSON numbers lose 64-bit integers. Unknown values are null.
void write_json(std::ostream&, const RunInfo&, const Verdict&, const Measurement&,
                const WallTimes&);
// Writes the last line of a run of several scenarios; the times are those of the whole run, which
// took so long.
void write_json(std::ostream&, const RunInfo&, const SuiteVerdict&, const WallTimes&,
                std::chrono::nanoseconds whole);

}  // namespace stepgate
