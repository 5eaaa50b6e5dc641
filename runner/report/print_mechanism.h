// SPDX-License-Identifier: MIT
// The part of the report that traces tell: what bounds each variant, where its time goes, what
// separates the variants, and what memory they hold.
#pragma once

#include <iosfwd>

#include "judge/mechanism.h"

namespace stepgate {

// A section with its title. Memory by purpose is shown only where it differs between the variants
// or from the plan.
void print_mechanism(std::ostream&, const Mechanism&);

}  // namespace stepgate
