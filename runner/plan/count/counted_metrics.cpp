// SPDX-License-Identifier: MIT
#include "plan/count/counted_metrics.h"

#include <algorithm>
#include <map>

#include "kernels/catalogue.h"
#include "plan/allocate/pack_arena.h"
#include "plan/analyse/access.h"
#include "plan/analyse/lifetimes.h"
#include "plan/count/step_memory.h"

namespace stepgate {
namespace {

// What one execution of an operation counts for.
struct Tally {
  double launches = 0;
  double copies = 0;
  double copy_bytes = 0;
  double memset_bytes = 0;
  double pageable_copies = 0;
  double host_waits = 0;
  double device_syncs = 0;
  double polls = 0;
  double device_allocs = 0;
  double device_frees = 0;
  double pinned_allocs = 0;
  double flops = 0;
};

struct Counter {
  const StepPlan& plan;
  const Operation& operation;

  Tally operator()(const LaunchKernel& launch) const {
    const auto work = work_of(launch);
    return {.launches = operation.captured ? 0.0 : 1.0, .flops = static_cast<double>(work.flops)};
  }
  Tally operator()(const CopyBytes& copy) const {
    const bool pageable = is_pageable(plan, copy);
    return {.copies = 1,
            .copy_bytes = static_cast<double>(copy.to.bytes),
            .pageable_copies = pageable ? 1.0 : 0.0,
            .host_waits = pageable || copy.host_waits ? 1.0 : 0.0};
  }
  Tally operator()(const FillZero& fill) const {
    return {.memset_bytes = static_cast<double>(fill.what.bytes)};
  }
  bool served(int buffer) const {
    return buffer_at(plan, buffer).allocated_by == AllocatedBy::step_allocator;
  }
  static Tally tally_of(const DriverCalls& calls) {
    return {
        .host_waits = calls.frees, .device_allocs = calls.allocations, .device_frees = calls.frees};
  }
  Tally operator()(const Allocate& allocate) const {
    if (served(allocate.buffer)) return tally_of(allocate.driver);
    return {.device_allocs = operation.captured ? 0.0 : 1.0};
  }
  Tally operator()(const EmptyCache& empty) const { return tally_of(empty.driver); }
  // cudaFree waits for the device; cudaFreeAsync does not.
  Tally operator()(const Release& release) const {
    const bool waits = buffer_at(plan, release.buffer).allocated_by == AllocatedBy::cuda;
    return {.host_waits = waits ? 1.0 : 0.0,
            .device_frees = operation.captured || served(release.buffer) ? 0.0 : 1.0};
  }
  Tally operator()(const RegisterHost&) const { return {.pinned_allocs = 1}; }
  // cudaHostUnregister waits for the device; cudaHostRegister does not.
  Tally operator()(const UnregisterHost&) const { return {.host_waits = 1}; }
  Tally operator()(const HostWaits& waits) const {
    if (waits.what == WaitFor::poll) return {.polls = 1};
    return {.host_waits = 1, .device_syncs = waits.what == WaitFor::device ? 1.0 : 0.0};
  }
  Tally operator()(const HostCopies&) const { return {}; }
  Tally operator()(const Prefetch&) const { return {}; }
  Tally operator()(const RecordEvent&) const { return {}; }
  Tally operator()(const StreamWaitsEvent&) const { return {}; }
  Tally operator()(const TakeBatch&) const { return {}; }
  Tally operator()(const HostWork&) const { return {}; }
};

double per_step(const StepPlan& plan, double Tally::*what) {
  // Divided last, so that turns that make up whole steps count as whole numbers.
  std::map<std::int64_t, double> sums;  // by how many steps pass between two times
  for (const Operation& operation : plan.operations) {
    const Tally tally = visit_action(Counter{plan, operation}, operation.action);
    sums[operation.every] += tally.*what;
  }
  double a_step = 0;
  for (const auto& [every, sum] : sums) a_step += sum / static_cast<double>(every);
  return a_step;
}

double launches(const StepPlan& plan) {
  const bool graph = std::any_of(plan.operations.begin(), plan.operations.end(),
                                 [](const Operation& operation) { return operation.captured; });
  return per_step(plan, &Tally::launches) + (graph ? 1 : 0);
}

// Of the allocator's simulation; nothing where plans cannot know.
std::optional<double> of_simulation(const StepPlan& plan, std::int64_t AllocatorSimulation::*what) {
  if (plan.allocator_simulation->depends_on_streams) return std::nullopt;
  return static_cast<double>((*plan.allocator_simulation).*what);
}

double peak_live(const StepPlan& plan) {
  if (plan.allocator_simulation)
    return static_cast<double>(plan.allocator_simulation->peak_live_bytes);
  return static_cast<double>(held_memory(plan).most_bytes);
}

// What the driver's pool keeps beyond the live bytes is its own business.
std::optional<double> peak_reserved(const StepPlan& plan) {
  if (plan.allocator_simulation)
    return of_simulation(plan, &AllocatorSimulation::peak_reserved_bytes);
  const bool pooled = std::any_of(
      plan.buffers.begin(), plan.buffers.end(),
      [](const Buffer& buffer) { return buffer.allocated_by == AllocatedBy::cuda_async; });
  if (pooled) return std::nullopt;
  return peak_live(plan);
}

std::optional<double> reserve_overhead(const StepPlan& plan) {
  const auto reserved = peak_reserved(plan);
  if (!reserved) return std::nullopt;
  return *reserved / peak_live(plan) - 1;
}

std::optional<double> fragmentation_peak(const StepPlan& plan) {
  if (!plan.allocator_simulation) return peak_reserved(plan) ? std::optional(0.0) : std::nullopt;
  const auto reserved = of_simulation(plan, &AllocatorSimulation::reserved_at_peak_live_bytes);
  if (!reserved) return std::nullopt;
  return 1 - peak_live(plan) / *reserved;
}

// Without an allocator of the step's own nothing is kept that could be given back.
double live_after_empty_cache(const StepPlan& plan) {
  if (plan.allocator_simulation)
    return static_cast<double>(plan.allocator_simulation->live_after_empty_cache_bytes);
  return static_cast<double>(kept_bytes(plan)) +
         growth_bytes_per_step(plan) * static_cast<double>(plan.counted_steps);
}

double arena_bytes(const StepPlan& plan) {
  return static_cast<double>(pack_arena(lifetimes_of(largest_turn(plan)).device).bytes);
}

double need(const StepPlan& plan) {
  return static_cast<double>(most_live_bytes(lifetimes_of(largest_turn(plan)).device));
}

double host_pinned(const StepPlan& plan) {
  std::int64_t bytes = 0;
  for (const Buffer& buffer : plan.buffers) {
    const bool locked =
        buffer.memory == MemoryKind::pinned || buffer.memory == MemoryKind::registered;
    if (locked) bytes += buffer.bytes * buffer.slots;
  }
  return static_cast<double>(bytes);
}

std::optional<double> sectors_per_request(const StepPlan& plan) {
  std::optional<double> most;
  for (const Operation& operation : plan.operations) {
    const auto* launch = std::get_if<LaunchKernel>(&operation.action);
    if (launch == nullptr) continue;
    const auto sectors = kernel(launch->kernel).sectors_per_request;
    if (sectors == nullptr) continue;
    const auto here =
        static_cast<double>(sectors(launch->shape, launch->dtype, launch->attributes));
    most = std::max(most.value_or(0), here);
  }
  return most;
}

}  // namespace

std::optional<double> counted(const StepPlan& plan, Metric metric) {
  switch (metric) {
    case Metric::launches_per_step:
      return launches(plan);
    case Metric::copies_per_step:
      return per_step(plan, &Tally::copies);
    case Metric::copy_bytes_per_step:
      return per_step(plan, &Tally::copy_bytes);
    case Metric::memset_bytes_per_step:
      return per_step(plan, &Tally::memset_bytes);
    case Metric::pageable_copies_per_step:
      return per_step(plan, &Tally::pageable_copies);
    case Metric::host_waits_per_step:
      return per_step(plan, &Tally::host_waits);
    case Metric::device_syncs_per_step:
      return per_step(plan, &Tally::device_syncs);
    case Metric::polls_per_step:
      return per_step(plan, &Tally::polls);
    case Metric::device_allocs_per_step:
      return per_step(plan, &Tally::device_allocs);
    case Metric::device_frees_per_step:
      return per_step(plan, &Tally::device_frees);
    case Metric::pinned_allocs_per_step:
      return per_step(plan, &Tally::pinned_allocs);
    case Metric::flops_per_step:
      return per_step(plan, &Tally::flops);
    case Metric::peak_live:
      return peak_live(plan);
    case Metric::peak_reserved:
      return peak_reserved(plan);
    case Metric::host_pinned:
      return host_pinned(plan);
    case Metric::need:
      return need(plan);
    case Metric::arena_bytes:
      return arena_bytes(plan);
    case Metric::live_slope:
      return plan.allocator_simulation ? plan.allocator_simulation->live_slope_bytes
                                       : growth_bytes_per_step(plan);
    case Metric::reserve_overhead:
      return reserve_overhead(plan);
    case Metric::fragmentation_peak:
      return fragmentation_peak(plan);
    case Metric::ooms:
      return plan.allocator_simulation ? of_simulation(plan, &AllocatorSimulation::ooms) : 0;
    case Metric::alloc_retries:
      return plan.allocator_simulation ? of_simulation(plan, &AllocatorSimulation::retries) : 0;
    case Metric::live_after_empty_cache:
      return live_after_empty_cache(plan);
    case Metric::sectors_per_request:
      return sectors_per_request(plan);
    default:
      return std::nullopt;
  }
}

bool trace_may_differ(const StepPlan& plan, Metric metric) {
  const bool allocations = metric == Metric::device_allocs_per_step;
  const bool frees =
      metric == Metric::device_frees_per_step || metric == Metric::host_waits_per_step;
  if (!plan.allocator_simulation || !(allocations || frees)) return false;
  if (plan.allocator_simulation->live_slope_bytes > 0) return true;
  if (!plan.allocator_simulation->depends_on_streams) return false;
  const bool gives_back = plan.allocator->cap_bytes ||
                          std::ranges::any_of(plan.operations, [](const Operation& operation) {
                            return std::holds_alternative<EmptyCache>(operation.action);
                          });
  return allocations || gives_back;
}

}  // namespace stepgate
