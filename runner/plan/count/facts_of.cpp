// SPDX-License-Identifier: MIT
#include "plan/count/facts_of.h"

#include <algorithm>
#include <span>
#include <string>
#include <utility>

#include "plan/analyse/access.h"
#include "plan/analyse/lifetimes.h"
#include "plan/count/counted_metrics.h"
#include "plan/count/rough_speed.h"
#include "plan/count/step_memory.h"

namespace stepgate {
namespace {

// The effect of a single operation on the steps around it; empty where it only queues work on the
// compute stream or keeps the host busy.
struct Disturbance {
  const StepPlan& plan;
  const Operation& operation;

  std::string operator()(const LaunchKernel&) const { return {}; }
  std::string operator()(const FillZero&) const { return {}; }
  std::string operator()(const HostWork&) const { return {}; }
  std::string operator()(const RecordEvent&) const { return {}; }
  std::string operator()(const StreamWaitsEvent&) const { return {}; }
  std::string operator()(const CopyBytes& copy) const {
    return copy.host_waits || is_pageable(plan, copy)
               ? "keeps the host in the call until it is done"
               : "";
  }
  std::string operator()(const HostCopies&) const { return "moves pages of managed memory"; }
  std::string operator()(const Prefetch&) const { return "moves pages of managed memory"; }
  std::string operator()(const Allocate& allocate) const {
    return by_driver(allocate.buffer, allocate.driver.allocations);
  }
  std::string operator()(const Release& release) const { return by_driver(release.buffer, 0); }
  std::string operator()(const EmptyCache&) const { return "waits for the device"; }
  std::string operator()(const RegisterHost&) const { return "asks the driver to pin memory"; }
  std::string operator()(const UnregisterHost&) const { return "waits for the device"; }
  std::string operator()(const HostWaits&) const { return "waits for the device"; }
  std::string operator()(const TakeBatch&) const {
    return plan.loader.wait_us > 0 ? "waits for a loader that goes on meanwhile" : "";
  }

  std::string operator()(const Collective&) const { return "waits for the other ranks"; }

  // A pool or the step's own allocator hands out memory in stream order.
  std::string by_driver(int buffer, double calls) const {
    const AllocatedBy by = plan.buffers[static_cast<std::size_t>(buffer)].allocated_by;
    return by == AllocatedBy::cuda || calls > 0 ? "asks the driver for memory, which waits" : "";
  }
};

// The reason why a few steps of this plan cannot alternate with a few steps of another, in words;
// empty where they can. Work outside the compute stream, waits for the device or a loader, and
// driver calls for memory all shift time into other steps. Work that only some steps do may be
// missing from a few steps.
std::string reason_against_interleaving(const StepPlan& plan,
                                        std::span<const PeriodicWork> periodic) {
  if (!periodic.empty())
    return "'" + periodic.front().name + "' of '" + plan.variant + "' is not in every step";
  for (const Operation& operation : plan.operations) {
    if (operation.stream != compute_stream) {
      return "'" + operation.name + "' of '" + plan.variant + "' is not on the compute stream";
    }
    if (operation.ahead != 0) {
      return "'" + operation.name + "' of '" + plan.variant + "' acts for another step";
    }
    const std::string reason = visit_action(Disturbance{plan, operation}, operation.action);
    if (!reason.empty()) return "'" + operation.name + "' of '" + plan.variant + "' " + reason;
  }
  return {};
}

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
    // The steps after it ask the driver for what it gave back.
    if (std::holds_alternative<EmptyCache>(operation.action))
      work->counts.insert(Metric::device_allocs_per_step);
  }
  const LoaderKnobs& loader = plan.loader;
  if (loader.depth > 0 && loader.restart_every > 1) {
    found.push_back({.name = "start of the loader's workers",
                     .every = loader.restart_every,
                     .rough_seconds = 1e-6 * (loader.start_us + loader.wait_us),
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
