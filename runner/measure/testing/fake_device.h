// SPDX-License-Identifier: MIT
// For tests only: a device whose steps have given times, and plans for it.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "measure/planned_subject.h"
#include "measure/testing/fake_runner.h"
#include "plan/count/facts_of.h"

namespace stepgate {

class FakeDevice : public Scripted<Device> {
 public:
  using Scripted<Device>::Scripted;

  std::unique_ptr<LoadedStep> load(const StepPlan& plan, const LoadDraw& draw) override {
    return load_named(plan.variant, draw);
  }
  std::vector<DeviceKey> libraries_for(const StepPlan& plan) override {
    if (!script_.libraries) return {};
    return script_.libraries(plan.variant);
  }
};

// Returns plans without operations, one for each name, of 64 samples per step.
inline std::vector<StepPlan> plans_named(const std::vector<std::string>& names) {
  std::vector<StepPlan> plans;
  for (const std::string& name : names) {
    StepPlan plan;
    plan.scenario = "scripted";
    plan.variant = name;
    plan.batch_sizes = {64};
    plan.batch_bytes = 1 << 20;
    plan.param_bytes = 4 << 20;
    plans.push_back(std::move(plan));
  }
  return plans;
}

inline std::vector<PlannedStep> steps_named(const std::vector<std::string>& names) {
  return with_facts(plans_named(names));
}

}  // namespace stepgate
