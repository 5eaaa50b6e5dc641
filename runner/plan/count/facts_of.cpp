// SPDX-License-Identifier: MIT
#include "plan/count/facts_of.h"

#include <algorithm>
#include <utility>

#include "plan/analyse/access.h"
#include "plan/analyse/interleaving.h"
#include "plan/analyse/lifetimes.h"
#include "plan/count/counted_metrics.h"
#include "plan/count/rough_speed.h"
#include "plan/count/step_memory.h"

namespace stepgate {
namespace {

OperationFacts facts_of(const StepPlan& plan, const Operation& operation) {
  OperationFacts facts{.tally = tally_of(plan, operation),
                       .work = {},
                       .rough_seconds = rough_cost_of(plan, operation)};
  if (const auto* launch = std::get_if<LaunchKernel>(&operation.action)) {
    facts.work = work_of(*launch);
    facts.limited_by = limit_of(*launch);
  }
  return facts;
}

std::vector<PeriodicWork> periodic_work(const StepPlan& plan,
                                        std::span<const OperationFacts> facts) {
  std::vector<PeriodicWork> found;
  for (std::size_t index = 0; index < plan.operations.size(); ++index) {
    const Operation& operation = plan.operations[index];
    if (operation.every == 1) continue;
    auto work = std::ranges::find(found, operation.every, &PeriodicWork::every);
    if (work == found.end()) {
      work = found.insert(found.end(), {.name = operation.name, .every = operation.every});
    }
    work->rough_seconds += facts[index].rough_seconds;
    for (const TallyRow& row : tally_table) {
      if (facts[index].tally.*row.amount != 0) work->counts.insert(row.metric);
    }
    if (operation.captured) work->counts.insert(Metric::launches_per_step);
  }
  const LoaderPlan& loader = plan.loader;
  if (loader.depth > 0 && loader.restart_every > 1) {
    found.push_back({.name = "start of the loader's workers",
                     .every = loader.restart_every,
                     .rough_seconds = 1e-9 * static_cast<double>(loader.start_nanoseconds +
                                                                 loader.wait_nanoseconds),
                     .counts = {Metric::loader_starts_per_step}});
  }
  return found;
}

}  // namespace

PlanFacts facts_of(const StepPlan& plan) {
  PlanFacts facts;
  facts.operations.reserve(plan.operations.size());
  for (const Operation& operation : plan.operations)
    facts.operations.push_back(facts_of(plan, operation));
  facts.periodic = periodic_work(plan, facts.operations);
  facts.memory = step_memory_of(plan);
  facts.held = held_memory(plan);
  facts.growth_bytes_per_step = growth_bytes_per_step(plan);
  facts.prefetch_depth = prefetch_depth(plan);
  facts.uses_managed_memory = uses_managed_memory(plan);
  facts.against_interleaving = reason_against_interleaving(plan, facts.periodic);
  count(plan, facts);
  return facts;
}

PlannedStep with_facts(StepPlan plan) {
  PlanFacts facts = facts_of(plan);
  return {std::move(plan), std::move(facts)};
}

std::vector<PlannedStep> with_facts(std::vector<StepPlan> plans) {
  std::vector<PlannedStep> steps;
  steps.reserve(plans.size());
  for (StepPlan& plan : plans) steps.push_back(with_facts(std::move(plan)));
  return steps;
}

}  // namespace stepgate
