// SPDX-License-Identifier: MIT
// Which mutations of a scenario its assertions notice.
#pragma once

#include <iosfwd>
#include <vector>

#include "base/text/diagnostic.h"
#include "judge/verdict/mutation.h"

namespace stepgate {

// A line for the scenario, and below it one for every override: what its removal does.
void print_mutations(std::ostream&, const Mutations&);

// Returns a fault for each surviving mutation: the line of the scenario and how to fix it.
std::vector<Diagnostic> faults_of(const Mutations&);

// A warning for every assertion that does not hold on the simulated device, and for every override
// without which the device refuses the step; a note for every limit that is far from all that the
// file's own overrides do.
void print_unknown(std::ostream&, const Mutations&);

}  // namespace stepgate
