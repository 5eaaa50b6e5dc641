// SPDX-License-Identifier: MIT
// What a plan says about a step without running it: the metrics of plan evidence.
#pragma once

#include <optional>

#include "plan/step_plan.h"
#include "scenario/metric.h"

namespace stepgate {

// The value in the metric's base unit, per step on average over the steps (`every` counts as a
// fraction). Nothing for metrics that a plan cannot know.
std::optional<double> counted(const StepPlan&, Metric);

// A step's allocator whose live memory grows asks the driver now and then: how often depends on
// which steps one looks at, so that a trace need not agree.
bool hangs_on_the_steps(const StepPlan&, Metric);

}  // namespace stepgate
