// SPDX-License-Identifier: MIT
// Prints histories of stored runs: one line per variant, JSON, and a page. pictures.h draws them.
#pragma once

#include <iosfwd>
#include <span>
#include <string>

#include "ledger/series/history.h"
#include "report/exit_code.h"
#include "report/run_info.h"

namespace stepgate {

// Prints "train_step/step on NVIDIA H200: 12 runs since 2026-09-01, +0.31 % a week [+0.25, +0.37];
// ALARM at run 7, 2026-10-13 (commit 0123abc -> 4567def)", and a line for each change and each
// period.
void print_history(std::ostream&, const VariantHistory&);

// Prints how many variants were checked, how many have no stored runs, and the result.
void print_history_end(std::ostream&, std::span<const VariantHistory>, std::size_t missing,
                       ExitCode);

// Writes one JSON object per line, schema "stepgate.history/2": every variant, then the end.
// docs/json_schema.json describes every field.
void write_history_json(std::ostream&, const RunInfo&, std::span<const VariantHistory>, ExitCode);

// Writes one page for people, as write_html does: every variant with its picture and its runs, what
// drifts first. `missing` has the variants without stored runs.
void write_history_html(std::ostream&, const RunInfo&, std::span<const VariantHistory>,
                        std::span<const std::string> missing, ExitCode);

// A drift of the step fails. A drift of the machine, or too few runs, are not gated.
ExitCode exit_code(HistoryOutcome);

// Writes exp(log) - 1 as "+0.31 %" or "-2.0 %".
std::string change_in_words(double log);

}  // namespace stepgate
