// SPDX-License-Identifier: MIT
#include "plan/analyse/find_capture_errors.h"

#include <algorithm>
#include <set>

#include "plan/analyse/access.h"
#include "plan/analyse/stream_handoff.h"

namespace stepgate {
namespace {

// Buffers that are allocated outside the captured part, so that their addresses may change.
std::set<int> allocated_outside(const StepPlan& plan) {
  std::set<int> buffers;
  for (const Operation& operation : plan.operations) {
    const auto* allocate = std::get_if<Allocate>(&operation.action);
    if (allocate && !operation.captured) buffers.insert(allocate->buffer);
  }
  return buffers;
}

// Whether a stream other than the graph's uses the buffer.
bool is_used_elsewhere(const StepPlan& plan, int buffer) {
  return std::any_of(
      plan.operations.begin(), plan.operations.end(), [&](const Operation& operation) {
        if (operation.stream == compute_stream) return false;
        const std::vector<BufferAccess> accesses = accesses_of(plan, operation);
        return std::any_of(accesses.begin(), accesses.end(),
                           [&](const BufferAccess& access) { return access.use.buffer == buffer; });
      });
}

// Returns why the buffer cannot be allocated by a graph, whose allocations keep their addresses in
// all launches.
std::optional<std::string> reason_against_serving(const StepPlan& plan, int buffer) {
  const Buffer& asked = plan.buffers[static_cast<std::size_t>(buffer)];
  const bool released =
      std::any_of(plan.operations.begin(), plan.operations.end(), [&](const Operation& operation) {
        const auto* release = std::get_if<Release>(&operation.action);
        return release && operation.captured && release->buffer == buffer;
      });
  if (!released)
    return "a graph that allocates '" + asked.name +
           "' without releasing it allocates it once and not in every step";
  if (asked.allocated_by == AllocatedBy::step_allocator && is_used_elsewhere(plan, buffer)) {
    return "another stream uses '" + asked.name +
           "', and the allocator may not ask how far streams are while one is captured";
  }
  if (asked.allocated_by == AllocatedBy::step_allocator && plan.allocator &&
      plan.allocator->kind == AllocatorKind::first_fit) {
    return "first_fit keeps no memory apart for a graph; 'alloc.with = \"caching\"' does";
  }
  return std::nullopt;
}

std::optional<std::string> reason_against(const StepPlan& plan, const Operation& operation) {
  if (std::holds_alternative<HostWaits>(operation.action)) return "the host waits there";
  if (const auto* copy = std::get_if<CopyBytes>(&operation.action)) {
    if (copy->host_waits) return "the host waits there";
    if (is_pageable(plan, *copy)) return "copies from and to pageable memory cannot be captured";
  }
  const auto direct = [&](int buffer) {
    return plan.buffers[static_cast<std::size_t>(buffer)].allocated_by == AllocatedBy::cuda;
  };
  if (const auto* allocate = std::get_if<Allocate>(&operation.action);
      allocate && direct(allocate->buffer)) {
    return "cudaMalloc cannot be captured; stream-ordered allocation can ('alloc.with = "
           "\"cuda_async\"')";
  }
  if (const auto* allocate = std::get_if<Allocate>(&operation.action)) {
    if (auto reason = reason_against_serving(plan, allocate->buffer)) return reason;
  }
  if (operation.every != 1)
    return "it acts once in " + std::to_string(operation.every) + " steps only";
  return std::nullopt;
}

// A captured operation on another stream is a branch of the graph: it must fork from the compute
// stream and join it again.
std::optional<std::string> reason_against_branch(const StepPlan& plan, std::size_t index) {
  const Operation& operation = plan.operations[index];
  if (operation.stream == compute_stream) return std::nullopt;
  if (stream_at(plan, operation.stream).kind == StreamKind::legacy_default)
    return "CUDA captures nothing on the legacy default stream";
  if (std::holds_alternative<StreamWaitsEvent>(operation.action)) return std::nullopt;
  const auto in_the_graph = [&](std::size_t other) {
    return other != index && plan.operations[other].captured;
  };
  if (!in_the_graph(last_awaited_record(plan, index)))
    return "its stream has waited for nothing that the graph records";
  if (std::holds_alternative<RecordEvent>(operation.action)) return std::nullopt;
  if (!in_the_graph(next_awaiting_wait(plan, index)))
    return "the compute stream never waits for it within the graph";
  return std::nullopt;
}

}  // namespace

std::optional<std::string> find_capture_error(const StepPlan& plan) {
  const std::set<int> moving = allocated_outside(plan);
  for (std::size_t index = 0; index < plan.operations.size(); ++index) {
    const Operation& operation = plan.operations[index];
    if (!operation.captured) continue;
    auto reason = reason_against(plan, operation);
    if (!reason) reason = reason_against_branch(plan, index);
    if (reason) {
      return "'" + operation.name + "' cannot be part of a graph: " + *reason;
    }
    for (const BufferAccess& access : accesses_of(plan, operation)) {
      if (!moving.contains(access.use.buffer)) continue;
      return "'" + operation.name + "' cannot be part of a graph: the address of '" +
             plan.buffers[static_cast<std::size_t>(access.use.buffer)].name +
             "' changes every step, and a graph's addresses are fixed";
    }
  }
  return std::nullopt;
}

}  // namespace stepgate
