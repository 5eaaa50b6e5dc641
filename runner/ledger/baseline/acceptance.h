// SPDX-License-Identifier: MIT
// Decides whether a run may become part of a baseline. It neither measures nor stores runs.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "judge/verdict/verdict.h"
#include "plan/planned_step.h"
#include "scenario/scenario.h"

namespace stepgate {

// A gate of a variant against a copy of itself: it asserts that their times are equal within 3 %,
// or within the variant's own gate margin where that is wider. If this cannot be shown, the machine
// shows differences where there are none, and nothing measured on it should be stored.
struct SelfCheck {
  Scenario scenario;
  std::vector<StepPlan> plans;
};

// The plans are the scenario's variants, possibly followed by anchors.
SelfCheck self_check(const Scenario&, const Variant&, std::span<const PlannedStep>);

// Returns why the run must not be stored, in words: it is broken, skipped, too short, or fails an
// assertion. A run that contradicts the stored runs, or comes from another machine, may only reset
// the baseline. nullopt where it may be stored.
std::optional<std::string> reason_against_storing(const Verdict& run,
                                                  bool begins_baseline_reset = false);

// Returns why the machine's runs must not be stored, by its self-check: the pair was not shown to
// be equal.
std::optional<std::string> reason_against_gate(const Verdict& self_check);

}  // namespace stepgate
