// SPDX-License-Identifier: MIT
// What a plan says about a step without running it: the metrics of plan evidence.
#pragma once

#include <optional>

#include "plan/step_plan.h"
#include "scenario/sentences/metric.h"

namespace stepgate {

// The value in the metric's base unit, per step on average over the steps (`every` counts as a
// fraction). Nothing for metrics that a plan cannot know.
std::optional<double> counted(const StepPlan&, Metric);

// Whether the driver's calls of some steps need not be as many as the plan says. A step's allocator
// whose live memory grows asks now and then, so it depends on which steps one looks at. Where a
// block is free again depends on how far the streams are, a pool may still grow by a block long
// after its first steps; and give back less or more, if it has a cap or is emptied.
bool trace_may_differ(const StepPlan&, Metric);

}  // namespace stepgate
