// SPDX-License-Identifier: MIT
// Whether a run may become part of a baseline. Measuring and storing it is for others.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "judge/verdict/verdict.h"
#include "plan/planned_step.h"
#include "scenario/scenario.h"

namespace stepgate {

// The gate against itself: a variant beside a copy of it, and the assertion that their times are
// equal within 3 %, or within the variant's margin of a gate where that is more. Where that cannot
// be shown, the machine tells differences where there are none, and nothing that it measures should
// be kept.
struct SelfCheck {
  Scenario scenario;
  std::vector<StepPlan> plans;
};

// The plans are the scenario's; there may be anchors behind them.
SelfCheck self_check(const Scenario&, const Variant&, std::span<const PlannedStep>);

// Why not to store the run, in words: it is broken, skipped, too short, or refutes an assertion. A
// run that contradicts the stored runs, or comes from another machine, may only reset the baseline.
std::optional<std::string> reason_against_storing(const Verdict& run,
                                                  bool begins_baseline_reset = false);

// The same of the self-check: a pair that was not shown to be equal.
std::optional<std::string> reason_against_gate(const Verdict& self_check);

}  // namespace stepgate
