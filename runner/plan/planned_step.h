// SPDX-License-Identifier: MIT
// A plan with its facts, as the stages of the line pass it on.
#pragma once

#include <utility>

#include "plan/plan_facts.h"
#include "plan/step_plan.h"

namespace stepgate {

// Made by with_facts (count/facts_of.h). Plan and facts are immutable, so they always match. To get
// another step, change a copy of the plan and compute its facts again.
class PlannedStep {
 public:
  PlannedStep(StepPlan plan, PlanFacts facts) : plan_(std::move(plan)), facts_(std::move(facts)) {}

  // A PlannedStep can be passed wherever a plan is expected.
  operator const StepPlan&() const { return plan_; }
  const StepPlan* operator->() const { return &plan_; }
  const PlanFacts& facts() const { return facts_; }

 private:
  StepPlan plan_;
  PlanFacts facts_;
};

}  // namespace stepgate
