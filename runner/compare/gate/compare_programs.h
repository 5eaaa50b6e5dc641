// SPDX-License-Identifier: MIT
// Compares the counts of a user's program in two folders or environments.
#pragma once

#include <span>
#include <vector>

#include "compare/gate/compare_counts.h"

namespace stepgate {

// Whether both sides are counts of a user's program, or reasons why there are none.
bool is_of_program(const CountedPair&);

// Compares exactly the counts of call_count_table, of both in as many steps and processes. More
// blocks, with the lines that are new; less is a note. So is more of a count that belongs to
// versions which differ. Without counts of a side nothing is gated.
std::vector<Finding> compare_program_counts(const CountedPair&);

// Keeps a finding that blocks only where further launches of both sides show it: HEAD has more in
// every launch than BASE in any, by more than the launches of a side differ. Otherwise the finding
// is undecided, with the numbers. `again` has the workloads of those launches.
void keep_what_comes_again(std::vector<Finding>&, std::span<const CountedPair> first,
                           std::span<const CountedPair> again);

}  // namespace stepgate
