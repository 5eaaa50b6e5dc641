// SPDX-License-Identifier: MIT
// Says whether a scenario would notice a changed variant: the outcomes of its assertions after a
// knob was changed. The verbs make and decide such scenarios.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "judge/verdict/verdict.h"
#include "scenario/scenario.h"

namespace stepgate {

enum class MutationEffect {
  fails,         // a passing assertion fails, or the variants are not the same step
  refused,       // no such scenario can be read or planned
  does_not_run,  // the device refuses the step
  undecided,     // a passing assertion becomes undecided
  survives,      // all passing assertions still pass
  same_step,     // the step is the same without the override, and no other variant sets the knob
  said_for_contrast,  // the step is the same without the override, but another variant sets the
                      // knob
  unknown             // all passing assertions still pass, and the others name the variant
};

// A count that changed, which an assertion about the variant could have tested.
struct ChangedCount {
  Metric metric = Metric::launches_per_step;
  double before = 0;
  double after = 0;
};

struct Mutation {
  VariantOverride without;
  MutationEffect effect = MutationEffect::survives;
  std::vector<std::string> assertions;  // that no longer pass
  std::string refusal;  // why there is no such scenario, or why its step does not run
  std::vector<ChangedCount> different;  // in the variant's plan, in the order of the metrics
};

// An assertion that some change makes fail, but neither removing an override nor swapping variants.
struct DistantLimit {
  AssertionVerdict assertion;
  double distance = 1;    // ratio of its sides, as a factor of 1 or more
  double nearest = 1;     // smallest distance without an override or with variants swapped
  std::string failed_by;  // "fix.model.layers = 64"
};

// The results of the mutations of one scenario.
struct Mutations {
  std::string scenario;
  std::vector<Mutation> mutations;
  // In the unchanged scenario, so nothing is known about them.
  std::vector<AssertionVerdict> not_holding;
  std::vector<AssertionVerdict> vacuous;  // failed by no change that was tried
  std::vector<AssertionVerdict>
      never_inside;  // assertions of the regime that neither the scenario nor any change satisfies
  std::vector<AssertionVerdict> reversed;  // failed on every profile, where the reversed ones pass
  std::vector<DistantLimit> distant;
  std::int64_t changes = 0;  // number of changes that were decided
  bool all_tried = true;     // false: there were too many
};

// The names of assertions that pass before and do not pass after: those that then fail if
// `failed_alone`, otherwise all.
std::vector<std::string> no_longer_holding(const Verdict& before, const Verdict& after,
                                           bool failed_alone);

// Counts that both sides have, with different values.
std::vector<ChangedCount> changed_counts(const std::map<Metric, double>& before,
                                         const std::map<Metric, double>& after);

// The effect of a mutation that changed the step, from the verdicts before and after it.
MutationEffect effect_of(const Verdict& before, const Verdict& after);

// Returns whether the scenario would pass with this mutation.
bool is_survivor(const Mutation&);

}  // namespace stepgate
