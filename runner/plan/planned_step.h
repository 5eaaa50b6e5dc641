// SPDX-License-Identifier: MIT
// A plan and what follows from it: what is handed on along the line.
#pragma once

#include <utility>

#include "plan/plan_facts.h"
#include "plan/step_plan.h"

namespace stepgate {

// Made by with_facts (count/facts_of.h). Neither half changes any more, so they cannot come apart:
// whoever wants another step changes a copy of the plan and has its facts found anew.
class PlannedStep {
 public:
  PlannedStep(StepPlan plan, PlanFacts facts) : plan_(std::move(plan)), facts_(std::move(facts)) {}

  // Wherever a plan is asked for, it is one.
  operator const StepPlan&() const { return plan_; }
  const StepPlan* operator->() const { return &plan_; }
  const PlanFacts& facts() const { return facts_; }

 private:
  StepPlan plan_;
  PlanFacts facts_;
};

}  // namespace stepgate
