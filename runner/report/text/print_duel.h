// SPDX-License-Identifier: MIT
// A duel for people and for programs. Decides nothing and knows no clock.
#pragma once

#include <cstdint>
#include <iosfwd>

#include "duel/gate/judge_duel.h"
#include "report/text/print_verdict.h"

namespace stepgate {

// Before anything is measured: who fights whom over how many works, and what it takes at least.
void print_duel_terms(std::ostream&, const Introduction&, const DuelSubject&, const DuelSettings&,
                      std::int64_t most_pairs);

// A table of the works, every work with its outcome and reason, and a last line with the outcome,
// the unit of evidence and the cost.
void print_duel(std::ostream&, const DuelVerdict&, Style);

// "schema" of the object; changes whenever a field changes its meaning or goes away.
constexpr int duel_report_schema = 1;

// One JSON object on one line, complete enough that a third party can recompute every contrast from
// the segments and every e-value from the contrasts.
void write_duel_json(std::ostream&, const DuelVerdict&, const DuelMeasurement&);

}  // namespace stepgate
