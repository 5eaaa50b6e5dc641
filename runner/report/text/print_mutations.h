// SPDX-License-Identifier: MIT
// Prints which mutations of a scenario its assertions notice.
#pragma once

#include <iosfwd>
#include <vector>

#include "base/text/diagnostic.h"
#include "judge/verdict/mutation.h"

namespace stepgate {

// Prints a line for the scenario, and below it one for every override with the effect of removing
// it.
void print_mutations(std::ostream&, const Mutations&);

// Returns an error for each surviving mutation: the line of the scenario and how to fix it.
std::vector<Diagnostic> faults_of(const Mutations&);

// Prints a warning for every assertion that does not pass on the simulated device, and for every
// override without which the device refuses the step. Prints a note for every limit that is far
// from all results of the file's own overrides.
void print_unknown(std::ostream&, const Mutations&);

}  // namespace stepgate
