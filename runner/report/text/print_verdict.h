// SPDX-License-Identifier: MIT
// A verdict for people. Decides nothing and knows no clock.
#pragma once

#include <iosfwd>
#include <span>
#include <string>

#include "judge/judge.h"
#include "judge/judge_suite.h"
#include "judge/verdict/verdict.h"
#include "measure/wall_times.h"
#include "report/run_info.h"
#include "report/text/table.h"

namespace stepgate {

// The device, a table of the variants, every sentence with its outcome and reason, and a last line
// with the outcome of the scenario and what it cost. Every line that sums up says SIMULATED first
// where nothing was measured.
void print_verdict(std::ostream&, const Verdict&, Style);

// Before the first round: what a verdict will cost, at least and for a line that is a percent from
// its limit.
void print_forecast(std::ostream&, const std::string& scenario, const Forecast&);

// One line of what holds, and all of anything else: what print_verdict prints, between empty lines.
void print_outcome(std::ostream&, const Verdict&, Style);

// One line a scenario.
void print_suite_table(std::ostream&, std::span<const Verdict>, Style);

// Whether the suite as a whole is refuted and by which lines, and at the very end how many
// scenarios ended how, with the lines that decide.
void print_tally(std::ostream&, std::span<const Verdict>, const SuiteVerdict&, const RunInfo&,
                 Style);

// One line: where the wall time of a run went that took so long, in seconds, by the parts that it
// has.
void print_wall_times(std::ostream&, const WallTimes&, std::chrono::nanoseconds whole);

}  // namespace stepgate
