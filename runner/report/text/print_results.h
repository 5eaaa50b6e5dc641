// SPDX-License-Identifier: MIT
// Prints what differs between two results, for people and as JSON.
#pragma once

#include <iosfwd>

#include "compare/results/compare_results.h"
#include "report/exit_code.h"

namespace stepgate {

// Prints devices and versions that differ first, then what is exact, then times, which have drift
// in them, and the answer in the last line.
void print_results(std::ostream&, const ComparedResults&);

// Writes one JSON object, schema "stepgate.compare/1" (docs/exports.md).
void write_results_json(std::ostream&, const ComparedResults&);

// Exact differences on one device fail. Times that were not interleaved fail nothing.
ExitCode exit_code(const ComparedResults&);

}  // namespace stepgate
