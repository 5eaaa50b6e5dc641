// SPDX-License-Identifier: MIT
#include "plan/count/counted_metrics.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "base/text/units.h"
#include "kernels/catalogue.h"
#include "kernels/gemm/gemm.h"
#include "plan/allocate/run_allocator.h"
#include "plan/analyse/access.h"
#include "plan/count/pool_returns.h"
#include "plan/count/step_memory.h"

namespace stepgate {
namespace {

// Limits of payloads: at most this for a few scalars, such as a norm, and at least this for a
// bucket worth a collective of its own. They are fixed, since a scenario may set none.
constexpr std::int64_t most_of_a_scalar = 64;
constexpr auto least_of_a_bucket = static_cast<std::int64_t>(mebibyte);

bool is_small(const Collective& reduction) {
  const std::int64_t bytes = payload_bytes(reduction);
  return bytes > most_of_a_scalar && bytes < least_of_a_bucket;
}

// The share of steps in which the operation acts.
double share_of_steps(const Operation& operation) {
  return 1 / static_cast<double>(operation.every);
}

// Index of the last kernel of the backward pass on the compute stream; -1 where there is none.
std::ptrdiff_t last_backward_kernel(const StepPlan& plan) {
  std::ptrdiff_t last = -1;
  for (std::size_t index = 0; index < plan.operations.size(); ++index) {
    const Operation& operation = plan.operations[index];
    if (operation.phase == Phase::backward && operation.stream == compute_stream &&
        std::holds_alternative<LaunchKernel>(operation.action))
      last = static_cast<std::ptrdiff_t>(index);
  }
  return last;
}

struct CollectiveCounts {
  double collectives = 0;
  double wire_bytes = 0;
  double small_reductions = 0;
  double late = 0;
  double early_waits = 0;
};

CollectiveCounts collective_counts(const StepPlan& plan) {
  CollectiveCounts sum;
  const std::ptrdiff_t last_kernel = last_backward_kernel(plan);
  std::set<int> recorded;  // events recorded after reductions of gradients
  std::set<int> streams;   // with such reductions
  for (std::size_t index = 0; index < plan.operations.size(); ++index) {
    const Operation& operation = plan.operations[index];
    const double share = share_of_steps(operation);
    const bool is_late = static_cast<std::ptrdiff_t>(index) > last_kernel;
    if (const auto* collective = std::get_if<Collective>(&operation.action)) {
      sum.collectives += share;
      sum.wire_bytes +=
          share * ring_wire_bytes(collective->kind, payload_bytes(*collective), plan.ranks.count);
      const bool reduces = collective->kind == CollectiveKind::all_reduce ||
                           collective->kind == CollectiveKind::reduce_scatter;
      if (!reduces || operation.phase == Phase::forward) continue;
      if (is_small(*collective)) sum.small_reductions += share;
      if (operation.phase != Phase::backward) continue;
      streams.insert(operation.stream);
      if (is_late) sum.late += share;
    } else if (const auto* record = std::get_if<RecordEvent>(&operation.action)) {
      if (streams.contains(operation.stream)) recorded.insert(record->event);
    } else if (const auto* wait = std::get_if<StreamWaitsEvent>(&operation.action)) {
      const bool for_others = operation.stream == compute_stream && recorded.contains(wait->event);
      if (for_others && operation.phase == Phase::backward && !is_late) sum.early_waits += share;
    }
  }
  return sum;
}

double state_bytes(const StepPlan& plan) {
  double bytes = 0;
  for (const Buffer& buffer : plan.buffers) {
    const bool is_state = buffer.purpose == Purpose::weights ||
                          buffer.purpose == Purpose::gradients ||
                          buffer.purpose == Purpose::optimizer_state;
    if (is_state && takes_device_memory(buffer.memory))
      bytes += static_cast<double>(buffer.bytes * buffer.slots);
  }
  return bytes;
}

// Adds the counts of collectives that are not sums over single operations.
void count_collectives(const StepPlan& plan, PlanFacts& facts) {
  const CollectiveCounts sum = collective_counts(plan);
  facts.counts[Metric::collectives_per_step] = sum.collectives;
  facts.counts[Metric::wire_bytes_per_step] = sum.wire_bytes;
  facts.counts[Metric::unbucketed_per_step] = std::max(sum.small_reductions - 1, 0.0);
  facts.counts[Metric::late_collectives_per_step] = sum.late;
  facts.counts[Metric::early_comm_waits_per_step] = sum.early_waits;
}

struct Counter {
  const StepPlan& plan;
  const Operation& operation;

  Tally operator()(const LaunchKernel& launch) const {
    const auto work = work_of(launch);
    const auto& replacement = kernel(launch.kernel).replacement;
    const auto launches = static_cast<double>(replacement ? replacement->launches : 1);
    return {.launches = operation.captured ? 0.0 : launches,
            .flops = static_cast<double>(work.flops)};
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
  Tally operator()(const Collective& collective) const {
    Tally tally{.payload_bytes = static_cast<double>(payload_bytes(collective))};
    switch (collective.kind) {
      case CollectiveKind::all_reduce:
        tally.all_reduces = 1;
        break;
      case CollectiveKind::reduce_scatter:
        tally.reduce_scatters = 1;
        break;
      case CollectiveKind::all_gather:
        tally.all_gathers = 1;
        break;
      case CollectiveKind::broadcast:
        tally.broadcasts = 1;
        break;
    }
    return tally;
  }
};

// Average per step over the chosen operations. Divides last, so that turns that make up whole steps
// give integers.
Tally per_step(const StepPlan& plan, const PlanFacts& facts, auto&& chosen) {
  std::map<std::int64_t, Tally> sums;  // by the operations' period in steps
  for (std::size_t index = 0; index < plan.operations.size(); ++index) {
    const Operation& operation = plan.operations[index];
    if (!chosen(operation)) continue;
    Tally& sum = sums[operation.every];
    for (const TallyRow& row : tally_table)
      sum.*row.amount += facts.operations[index].tally.*row.amount;
  }
  Tally a_step;
  for (const auto& [every, sum] : sums) {
    for (const TallyRow& row : tally_table)
      a_step.*row.amount += sum.*row.amount / static_cast<double>(every);
  }
  return a_step;
}

// A value of the allocator's simulation; nullopt where it depends on the progress of streams.
std::optional<double> of_simulation(const StepPlan& plan, std::int64_t AllocatorSimulation::*what) {
  if (plan.allocator_simulation->depends_on_streams) return std::nullopt;
  return static_cast<double>((*plan.allocator_simulation).*what);
}

// Plans cannot know what the driver's pool keeps beyond the live bytes.
std::optional<double> peak_reserved(const StepPlan& plan, double peak_live) {
  if (plan.allocator_simulation)
    return of_simulation(plan, &AllocatorSimulation::peak_reserved_bytes);
  const bool pooled = std::any_of(
      plan.buffers.begin(), plan.buffers.end(),
      [](const Buffer& buffer) { return buffer.allocated_by == AllocatedBy::cuda_async; });
  if (pooled) return std::nullopt;
  return peak_live;
}

std::optional<double> fragmentation_peak(const StepPlan& plan, double peak_live) {
  if (!plan.allocator_simulation)
    return peak_reserved(plan, peak_live) ? std::optional(0.0) : std::nullopt;
  const auto reserved = of_simulation(plan, &AllocatorSimulation::reserved_at_peak_live_bytes);
  if (!reserved) return std::nullopt;
  return 1 - peak_live / *reserved;
}

// Without an allocator of the step's own, there is no cache to give back.
double live_after_empty_cache(const StepPlan& plan, double growth_bytes_per_step) {
  if (plan.allocator_simulation)
    return static_cast<double>(plan.allocator_simulation->live_after_empty_cache_bytes);
  return static_cast<double>(kept_bytes(plan)) +
         growth_bytes_per_step * static_cast<double>(plan.counted_steps);
}

std::optional<double> sectors_per_request(const StepPlan& plan) {
  std::optional<double> most;
  for (const Operation& operation : plan.operations) {
    const auto* launch = std::get_if<LaunchKernel>(&operation.action);
    if (launch == nullptr) continue;
    const Kernel& launched = kernel(launch->kernel);
    const auto sectors = kernel(launched.name).cost.sectors_per_request;
    if (sectors == nullptr) continue;
    if (launched.replacement) return std::nullopt;  // nobody knows how a library accesses memory
    const auto here =
        static_cast<double>(sectors(launch->shape, launch->dtype, launch->attributes));
    most = std::max(most.value_or(0), here);
  }
  return most;
}

// Counts that may differ from a trace. If the live memory of a step's allocator grows, its driver
// calls depend on the observed steps. If frees depend on the progress of streams, a pool may grow
// late, and give back a different amount where it has a cap or is emptied.
std::set<Metric> that_may_differ(const StepPlan& plan) {
  if (!plan.allocator_simulation) return {};
  const std::set all{Metric::device_allocs_per_step, Metric::device_frees_per_step,
                     Metric::host_waits_per_step};
  if (plan.allocator_simulation->live_slope_bytes > 0) return all;
  if (!plan.allocator_simulation->depends_on_streams) return {};
  const bool gives_back = plan.allocator->cap_bytes ||
                          std::ranges::any_of(plan.operations, [](const Operation& operation) {
                            return std::holds_alternative<EmptyCache>(operation.action);
                          });
  return gives_back ? all : std::set{Metric::device_allocs_per_step};
}

// Removes what the allocator's simulation does not know where the step repeats only after too many
// steps to simulate.
void remove_unknown(const StepPlan& plan, PlanFacts& facts) {
  if (!plan.allocator_simulation || steps_to_simulate(plan).know_every_step) return;
  for (const Metric unknown : {Metric::peak_live, Metric::peak_reserved, Metric::reserve_overhead,
                               Metric::fragmentation_peak, Metric::live_slope,
                               Metric::device_allocs_per_step, Metric::device_frees_per_step,
                               Metric::host_waits_per_step, Metric::spinning_waits_per_step})
    facts.counts.erase(unknown);
}

// The cap in bytes; nullopt where it is a share of device memory and there is no device.
std::optional<double> memory_cap(const StepPlan& plan) {
  if (plan.cap_of_device) return std::nullopt;
  return static_cast<double>(plan.cap_bytes.value_or(0));
}

// Average driver requests per step; divides last, as per_step does.
double requests_per_step(const StepPlan& plan) {
  std::map<std::int64_t, double> requests;  // by the operations' period in steps
  for (const Operation& operation : plan.operations) {
    if (std::holds_alternative<Allocate>(operation.action)) requests[operation.every] += 1;
  }
  double a_step = 0;
  for (const auto& [every, sum] : requests) a_step += sum / static_cast<double>(every);
  return a_step;
}

double streams_in_use(const StepPlan& plan) {
  std::set<int> used;
  for (const Operation& operation : plan.operations) used.insert(operation.stream);
  return static_cast<double>(used.size());
}

double advised_bytes(const StepPlan& plan) {
  std::int64_t bytes = 0;
  for (const Buffer& buffer : plan.buffers) {
    if (buffer.advice != ManagedAdvice::none) bytes += buffer.bytes;
  }
  return static_cast<double>(bytes);
}

// Counts host waits that spin and those at which a pool gives memory back.
void count_kinds_of_waits(const StepPlan& plan, PlanFacts& facts) {
  const double waits = facts.counts.at(Metric::host_waits_per_step);
  facts.counts[Metric::spinning_waits_per_step] = plan.wait_style == SyncWait::spin ? waits : 0;
  if (const auto returns = pool_returns_per_step(plan))
    facts.counts[Metric::pool_returns_per_step] = *returns;
}

void count_operations(const StepPlan& plan, PlanFacts& facts) {
  const Tally a_step = per_step(plan, facts, [](const Operation&) { return true; });
  for (const TallyRow& row : tally_table) {
    if (!row.of_ranks || plan.ranks.count > 1) facts.counts[row.metric] = a_step.*row.amount;
  }
  if (std::ranges::any_of(plan.operations, &Operation::captured))
    facts.counts[Metric::launches_per_step] += 1;  // of the graph
  for (int phase = 0; phase < phase_count; ++phase) {
    facts.phases[static_cast<std::size_t>(phase)] = per_step(
        plan, facts,
        [&](const Operation& operation) { return operation.phase == static_cast<Phase>(phase); });
  }
}

// Arithmetic of a GEMM without its epilogue.
double gemm_flops(const LaunchKernel& launch, double flops) {
  const KernelLibrary& library = kernel(launch.kernel).library;
  if (!library.is_gemm()) return flops;
  const auto [rows, columns, depth, groups] =
      library.gemm(launch.shape, launch.dtype, launch.attributes);
  return 2.0 * static_cast<double>(groups) * static_cast<double>(rows) *
         static_cast<double>(columns) * static_cast<double>(depth);
}

// The usual count of a model's FLOPs: GEMMs of forward and backward, including those of attention.
double model_flops(const StepPlan& plan, const PlanFacts& facts) {
  double flops = 0;
  for (std::size_t index = 0; index < plan.operations.size(); ++index) {
    const Operation& operation = plan.operations[index];
    const auto* launch = std::get_if<LaunchKernel>(&operation.action);
    const bool trains = operation.phase == Phase::forward || operation.phase == Phase::backward;
    if (launch == nullptr || !trains) continue;
    // The model needs the same arithmetic, whoever launches the kernel.
    const KernelLibrary& library = kernel(launch->kernel.name()).library;
    if (!library.is_gemm() && !library.is_attention) continue;
    flops += operation.model_share * gemm_flops(*launch, facts.operations[index].tally.flops) /
             static_cast<double>(operation.every);
  }
  return flops;
}

void count_memory(const StepPlan& plan, PlanFacts& facts) {
  const auto put = [&](Metric metric, std::optional<double> value) {
    if (value) facts.counts[metric] = *value;
  };
  const auto live = static_cast<double>(peak_live_bytes(plan, facts.held));
  const auto reserved = peak_reserved(plan, live);
  put(Metric::peak_live, live);
  put(Metric::peak_reserved, reserved);
  if (reserved) put(Metric::reserve_overhead, *reserved / live - 1);
  put(Metric::fragmentation_peak, fragmentation_peak(plan, live));
  put(Metric::live_after_empty_cache, live_after_empty_cache(plan, facts.growth_bytes_per_step));
  put(Metric::memory_cap, memory_cap(plan));
  put(Metric::requests_per_step, requests_per_step(plan));
  put(Metric::advised_bytes, advised_bytes(plan));
  put(Metric::host_pinned, static_cast<double>(facts.held.pinned_bytes));
  // If batch sizes alternate, the largest batch needs the most memory.
  const bool turns = plan.batch_sizes.size() > 1;
  const StepMemory largest = turns ? step_memory_of(largest_turn(plan)) : StepMemory{};
  const StepMemory& needed = turns ? largest : facts.memory;
  put(Metric::need, static_cast<double>(needed.need_bytes));
  put(Metric::arena_bytes, static_cast<double>(needed.arena.bytes));
  const auto& simulation = plan.allocator_simulation;
  put(Metric::live_slope, simulation ? simulation->live_slope_bytes : facts.growth_bytes_per_step);
  put(Metric::ooms, simulation ? of_simulation(plan, &AllocatorSimulation::ooms) : 0);
  put(Metric::alloc_retries, simulation ? of_simulation(plan, &AllocatorSimulation::retries) : 0);
}

}  // namespace

Tally tally_of(const StepPlan& plan, const Operation& operation) {
  return visit_action(Counter{plan, operation}, operation.action);
}

void count(const StepPlan& plan, PlanFacts& facts) {
  count_operations(plan, facts);
  facts.model_flops = model_flops(plan, facts);
  count_memory(plan, facts);
  if (const auto sectors = sectors_per_request(plan))
    facts.counts[Metric::sectors_per_request] = *sectors;
  facts.counts[Metric::streams] = streams_in_use(plan);
  facts.counts[Metric::loader_threads] =
      plan.loader.depth > 0 ? static_cast<double>(plan.loader.workers) : 0;
  const bool restarts = plan.loader.depth > 0 && plan.loader.restart_every > 0;
  facts.counts[Metric::loader_starts_per_step] =
      restarts ? static_cast<double>(plan.loader.workers) /
                     static_cast<double>(plan.loader.restart_every)
               : 0;
  count_kinds_of_waits(plan, facts);
  facts.counts[Metric::state_bytes] = state_bytes(plan);
  if (plan.ranks.count > 1) count_collectives(plan, facts);
  facts.may_differ = that_may_differ(plan);
  remove_unknown(plan, facts);
}

}  // namespace stepgate
