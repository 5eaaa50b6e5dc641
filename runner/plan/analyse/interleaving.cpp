// SPDX-License-Identifier: MIT
#include "plan/analyse/interleaving.h"

#include "plan/analyse/access.h"

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
    return plan.loader.wait_nanoseconds > 0 ? "waits for a loader that goes on meanwhile" : "";
  }

  std::string operator()(const Collective&) const { return "waits for the other ranks"; }

  // A pool or an allocator of the step's own hands out memory in the order of its stream.
  std::string by_driver(int buffer, double calls) const {
    const AllocatedBy by = plan.buffers[static_cast<std::size_t>(buffer)].allocated_by;
    return by == AllocatedBy::cuda || calls > 0 ? "asks the driver for memory, which waits" : "";
  }
};

}  // namespace

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

}  // namespace stepgate
