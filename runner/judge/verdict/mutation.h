// SPDX-License-Identifier: MIT
// Whether a scenario would notice that one of its variants is another: what became of its sentences
// when somebody turned a knob. The verbs make and decide such scenarios.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "judge/verdict/verdict.h"
#include "scenario/scenario.h"

namespace stepgate {

enum class MutationEffect {
  refuted,            // a sentence that held is refuted, or the variants are not the same step
  refused,            // no such scenario can be read or planned: no sentence is asked
  does_not_run,       // the device refuses the step, so nothing of it is known
  undecided,          // a sentence that held neither holds nor is refuted
  survives,           // all that held holds
  same_step,          // the variant is the same without it, and no other one sets the knob
  said_for_contrast,  // the variant is the same without it, and another one sets the knob
  unknown             // all that held holds, and what does not hold speaks of the variant
};

// A count that changed, of which a sentence about the variant could have spoken.
struct ChangedCount {
  Metric metric = Metric::launches_per_step;
  double before = 0;
  double after = 0;
};

struct Mutation {
  VariantOverride without;
  MutationEffect effect = MutationEffect::survives;
  std::vector<std::string> sentences;  // that held and do not any more
  std::string refusal;  // why there is no such scenario, or why its step does not run
  std::vector<ChangedCount> different;  // of the variant's plan, in the order of the metrics
};

// A sentence that something refutes, and nothing that the file itself says of its variants.
struct DistantLimit {
  SentenceVerdict sentence;
  double distance = 1;     // of its sides from each other, as a factor of 1 or more
  double nearest = 1;      // the least that it becomes without an override or with variants swapped
  std::string refuted_by;  // "fix.model.layers = 64"
};

// Holds what was found out by mutations of one scenario.
struct Mutations {
  std::string scenario;
  std::vector<Mutation> mutations;
  std::vector<SentenceVerdict> not_holding;   // as it is, so nothing is known about them
  std::vector<SentenceVerdict> vacuous;       // refuted by no change that was tried
  std::vector<SentenceVerdict> never_inside;  // of the regime: satisfied by no change, nor as it is
  std::vector<SentenceVerdict> reversed;      // refuted on every profile, where their reverse holds
  std::vector<DistantLimit> distant;
  std::int64_t changes = 0;  // that were decided for these
  bool all_tried = true;     // or there were too many for these
};

// The names of sentences that hold before and do not hold after, of those refuted alone or of any.
std::vector<std::string> no_longer_holding(const Verdict& before, const Verdict& after,
                                           bool refuted_alone);

// Counts that both have, and differently.
std::vector<ChangedCount> changed_counts(const std::map<Metric, double>& before,
                                         const std::map<Metric, double>& after);

// The effect of a mutation that changed the step, from the verdicts before and after it.
MutationEffect effect_of(const Verdict& before, const Verdict& after);

// Whether the scenario would let it pass.
bool is_survivor(const Mutation&);
bool has_survivors(const Mutations&);

}  // namespace stepgate
