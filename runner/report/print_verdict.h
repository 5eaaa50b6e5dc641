// SPDX-License-Identifier: MIT
// A verdict for people. Decides nothing and knows no clock.
#pragma once

#include <iosfwd>
#include <span>
#include <string>

#include "judge/forecast.h"
#include "judge/judge_suite.h"
#include "judge/verdict.h"
#include "report/coloured.h"

namespace stepgate {

// The device, a table of the variants, every sentence with its outcome and reason, and a last line
// with the outcome of the scenario and what it cost.
void print_verdict(std::ostream&, const Verdict&, Style);

// Before the first round: what a verdict will cost, at least and for a line that is a percent from
// its limit.
void print_forecast(std::ostream&, const std::string& scenario, const Forecast&);

// One line a scenario, how many ended how, and whether the suite as a whole is refuted.
void print_suite_summary(std::ostream&, std::span<const Verdict>, const SuiteVerdict&, Style);

}  // namespace stepgate
