// SPDX-License-Identifier: MIT
// Prints what the steps of a scenario are, five things first; differences between variants are
// marked.
#pragma once

#include <iosfwd>
#include <string>
#include <vector>

#include "scenario/knobs/described_step.h"

namespace stepgate {

// A line a thing, indented by two, and of a thing in which variants differ a line for those that
// are alike, the first marked by a star:
//   model      mlp, layers 4, hidden 1024, tf32
//   sync     * baseline  step
//              fix       none
// Nothing without steps.
void print_steps(std::ostream&, const std::vector<DescribedStep>&);

// A line a thing for lists: "sync: step (baseline); none (fix, control)".
std::vector<std::string> steps_in_words(const std::vector<DescribedStep>&);

// "all" of a thing in which none differs, else "baseline, item", of many the first.
std::string variants_in_words(const ComparedThing&, const AlikeVariants&);

// An empty list is said in a word too: "nothing else".
std::string described_in_words(const AlikeVariants&);

}  // namespace stepgate
