// SPDX-License-Identifier: MIT
// For tests only: plans of scenarios that are written as knobs instead of TOML.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>

#include "plan/compose/build_step_plan.h"
#include "plan/testing/counted.h"

namespace stepgate {

// The batches of small_mlp and small_transformer are on the device already; tests of copies set
// other knobs.
inline Knobs small_mlp() {
  Knobs knobs;
  knobs.transfer.host = HostMemory::resident;
  knobs.model.layers = 3;
  knobs.model.hidden = 16;
  knobs.batch.size = 8;
  return knobs;
}

inline Knobs small_transformer() {
  Knobs knobs;
  knobs.transfer.host = HostMemory::resident;
  knobs.model = {.kind = ModelKind::transformer, .layers = 4, .hidden = 32, .dtype = DType::bf16};
  knobs.model.heads = 2;
  knobs.model.seq = 128;
  knobs.model.vocab = 50;
  knobs.batch.size = 8;
  knobs.optim.kind = OptimKind::adamw;
  return knobs;
}

inline Scenario scenario_of(const Knobs& knobs) {
  Scenario scenario;
  scenario.name = "by_hand";
  scenario.file = "by_hand.toml";
  scenario.variants.push_back({"only", knobs, {"by_hand.toml", 3, 1}});
  return scenario;
}

constexpr std::uint64_t seed_by_hand = 20;

// Throws RequestError where plans refuse these knobs.
inline StepPlan plan_of(const Knobs& knobs) {
  return build_step_plans(scenario_of(knobs), seed_by_hand).front();
}

inline double value(const StepPlan& plan, Metric metric) {
  return counted(plan, metric).value();
}

inline double value(const Knobs& knobs, Metric metric) {
  return value(plan_of(knobs), metric);
}

inline std::int64_t launches_of(const StepPlan& plan, std::string_view kernel) {
  return std::ranges::count_if(plan.operations, [&](const Operation& operation) {
    const auto* launch = std::get_if<LaunchKernel>(&operation.action);
    return launch != nullptr && launch->kernel == kernel;
  });
}

inline std::string refusal_of(const Knobs& knobs) {
  try {
    (void)plan_of(knobs);
  } catch (const RequestError& error) {
    return error.what();
  }
  return "accepted";
}

}  // namespace stepgate
