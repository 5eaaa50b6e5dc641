// SPDX-License-Identifier: MIT
// Prints what differs between two results, for people and as JSON.
#pragma once

#include <iosfwd>
#include <string>
#include <string_view>

#include "compare/results/compare_results.h"
#include "report/exit_code.h"

namespace stepgate {

inline constexpr std::string_view unpaired =
    "unpaired: the two runs were not interleaved; drift between them is not excluded";

// "2 facts differ".
std::string answer_of(const ComparedResults&);

// Prints devices and versions that differ first, then points of sweeps, then what is exact, then
// times, which have drift in them, and the answer in the last line.
void print_results(std::ostream&, const ComparedResults&);

// Writes one JSON object, a compare_line of docs/json_schema.json.
void write_results_json(std::ostream&, const ComparedResults&);

// Exact differences on one device fail. Times that were not interleaved fail nothing.
ExitCode exit_code(const ComparedResults&);

}  // namespace stepgate
