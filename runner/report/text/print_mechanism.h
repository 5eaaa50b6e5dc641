// SPDX-License-Identifier: MIT
// The part of the report that traces tell: what bounds each variant, where its time goes, what
// separates the variants, and what memory they hold.
#pragma once

#include <iosfwd>
#include <string>
#include <vector>

#include "judge/verdict/mechanism.h"

namespace stepgate {

// A section with its title. Memory by purpose is shown only where it differs between the variants
// or from the plan.
void print_mechanism(std::ostream&, const Mechanism&);

// Where the time of the variants' traced steps goes: a row of titles, then one each.
std::vector<std::vector<std::string>> time_rows(const Mechanism&);

// The work that takes the most of the step in any variant: a row of titles, then at most eight
// rows, the slowest first. A row says how often, how long and what share of a traced step. Nothing
// where no work was traced.
std::vector<std::vector<std::string>> slowest_rows(const Mechanism&);

}  // namespace stepgate
