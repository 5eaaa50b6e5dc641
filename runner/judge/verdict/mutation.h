// SPDX-License-Identifier: MIT
// Whether a scenario would notice a changed variant: the outcomes of its assertions after a knob
// was changed. The verbs make and decide such scenarios.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "judge/verdict/verdict.h"
#include "scenario/scenario.h"

namespace stepgate {

enum class MutationEffect {
  fails,              // an assertion that held fails, or the variants are not the same step
  refused,            // no such scenario can be read or planned: no assertion is asked
  does_not_run,       // the device refuses the step, so nothing of it is known
  undecided,          // an assertion that held neither passes nor fails
  survives,           // all that passed holds
  same_step,          // the variant is the same without it, and no other one sets the knob
  said_for_contrast,  // the variant is the same without it, and another one sets the knob
  unknown             // all that passed holds, and what does not pass speaks of the variant
};

// A changed count; an assertion about the variant could have tested it.
struct ChangedCount {
  Metric metric = Metric::launches_per_step;
  double before = 0;
  double after = 0;
};

struct Mutation {
  VariantOverride without;
  MutationEffect effect = MutationEffect::survives;
  std::vector<std::string> assertions;  // that held and do not any more
  std::string refusal;  // why there is no such scenario, or why its step does not run
  std::vector<ChangedCount> different;  // of the variant's plan, in the order of the metrics
};

// An assertion that something refutes, and nothing that the file itself says of its variants.
struct DistantLimit {
  AssertionVerdict assertion;
  double distance = 1;    // of its sides from each other, as a factor of 1 or more
  double nearest = 1;     // the least that it becomes without an override or with variants swapped
  std::string failed_by;  // "fix.model.layers = 64"
};

// Holds what was found out by mutations of one scenario.
struct Mutations {
  std::string scenario;
  std::vector<Mutation> mutations;
  std::vector<AssertionVerdict> not_holding;  // as it is, so nothing is known about them
  std::vector<AssertionVerdict> vacuous;      // failed by no change that was tried
  std::vector<AssertionVerdict>
      never_inside;                        // of the regime: satisfied by no change, nor as it is
  std::vector<AssertionVerdict> reversed;  // failed on every profile, where their reverse passes
  std::vector<DistantLimit> distant;
  std::int64_t changes = 0;  // that were decided for these
  bool all_tried = true;     // or there were too many for these
};

// The names of assertions that pass before and do not pass after, of those failed alone or of any.
std::vector<std::string> no_longer_holding(const Verdict& before, const Verdict& after,
                                           bool failed_alone);

// Counts that both have, and differently.
std::vector<ChangedCount> changed_counts(const std::map<Metric, double>& before,
                                         const std::map<Metric, double>& after);

// The effect of a mutation that changed the step, from the verdicts before and after it.
MutationEffect effect_of(const Verdict& before, const Verdict& after);

// Whether the scenario would let it pass.
bool is_survivor(const Mutation&);
bool has_survivors(const Mutations&);

}  // namespace stepgate
