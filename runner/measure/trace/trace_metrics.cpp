// SPDX-License-Identifier: MIT
#include "measure/trace/trace_metrics.h"

#include <algorithm>
#include <set>
#include <unordered_map>
#include <utility>

#include "base/require.h"
#include "base/seconds.h"
#include "kernels/catalogue.h"
#include "measure/trace/communication.h"
#include "measure/trace/streams.h"
#include "measure/trace/time_breakdown.h"

namespace stepgate {
namespace {

double seconds(std::int64_t of_nanoseconds) {
  return static_cast<double>(of_nanoseconds) / nanoseconds_per_second;
}

double seconds(const auto& record) {
  return seconds((record.end - record.begin).count());
}

using Values = std::map<Metric, double>;

// A library may clear memory within a kernel's launch, such as a few bytes of counters for a GEMM.
// That fill is part of the kernel, and plans do not know of it.
bool is_own_fill(const DeviceWork& work, const StepPlan& plan) {
  if (work.kind != WorkKind::fill || work.operation < 0) return false;
  const Action& action = plan.operations[static_cast<std::size_t>(work.operation)].action;
  return !std::holds_alternative<LaunchKernel>(action);
}

void count(const Trace& trace, const StepPlan& plan, Values& totals) {
  for (const TallyRow& row : traced_tally) {
    double& total = totals[row.metric];
    for (const HostCall& call : trace.calls) {
      if (operation_of(trace, call) >= 0) total += amount_of(trace, call, plan, row.metric);
    }
    for (const DeviceWork& work : trace.work) {
      if (work.operation >= 0) total += amount_of(work, plan, row.metric);
    }
  }
}

bool is_collective(const StepPlan& plan, int operation) {
  return operation >= 0 && std::holds_alternative<Collective>(operation_at(plan, operation).action);
}

// Returns whether no earlier call of the same operation launched a kernel.
bool begins_a_launch(const Trace& trace, const HostCall& call) {
  if (call.span < 0) return true;
  for (const HostCall* before = &call; before != trace.calls.data();) {
    --before;
    if (before->span != call.span) return true;
    if (before->kind == CallKind::launch) return false;
  }
  return true;
}

// Returns whether a count is exact over this number of steps. A rarer operation may happen once
// more or once less in them.
bool is_exact(const PlannedStep& plan, Metric metric, std::int64_t steps) {
  return std::ranges::all_of(plan.facts().periodic, [&](const PeriodicWork& work) {
    return steps % work.every == 0 || !work.counts.contains(metric);
  });
}

void add_counts(const Trace& trace, const PlannedStep& plan, Values& values) {
  Values totals;
  for (const TallyRow& row : traced_tally) totals[row.metric] = 0;
  count(trace, plan, totals);
  for (const TallyRow& row : traced_tally) {
    if (row.of_ranks && plan->ranks.count == 1) totals.erase(row.metric);
  }
  for (const auto& [metric, total] : totals) {
    if (is_exact(plan, metric, trace.steps))
      values[metric] = total / static_cast<double>(trace.steps);
  }
}

// Adds no value where the denominator is 0.
void add_ratio(Values& values, Metric metric, double part, double whole) {
  if (whole > 0) values[metric] = part / whole;
}

// Counts kernels with their own launch call; kernels of a graph have none.
void add_short_kernels(const Trace& trace, Values& values) {
  std::unordered_map<std::uint32_t, const HostCall*> launches;
  for (const HostCall& call : trace.calls) {
    if (call.kind == CallKind::launch && call.correlation != 0)
      launches.emplace(call.correlation, &call);
  }
  double kernels = 0;
  double brief = 0;
  for (const DeviceWork& work : trace.work) {
    if (work.operation < 0 || work.kind != WorkKind::kernel || work.from_graph) continue;
    const auto launch = launches.find(work.correlation);
    if (launch == launches.end()) continue;
    kernels += 1;
    if (seconds(work) < seconds(*launch->second)) brief += 1;
  }
  add_ratio(values, Metric::short_kernel_share, brief, kernels);
}

void add_copy_speed(const Trace& trace, Values& values) {
  double bytes = 0;
  double time = 0;
  for (const DeviceWork& work : trace.work) {
    if (work.operation < 0 || !is_to_device(work)) continue;
    bytes += static_cast<double>(work.bytes);
    time += seconds(work);
  }
  add_ratio(values, Metric::h2d_gbps, bytes, time);
}

// A launch that runs several kernels moves its bytes once.
void add_kernel_speed(const Trace& trace, const PlannedStep& plan, Values& values) {
  std::set<std::pair<int, std::int64_t>> launches;
  double bytes = 0;
  double time = 0;
  for (const DeviceWork& work : trace.work) {
    if (work.operation < 0 || work.kind != WorkKind::kernel) continue;
    const auto index = static_cast<std::size_t>(work.operation);
    const OperationFacts& facts = plan.facts().operations.at(index);
    const bool is_launch = std::holds_alternative<LaunchKernel>(plan->operations.at(index).action);
    if (!is_launch || facts.limited_by != KernelLimit::memory) continue;
    time += seconds(work);
    if (!launches.emplace(work.operation, work.step).second) continue;
    bytes += static_cast<double>(facts.work.bytes_read + facts.work.bytes_written);
  }
  add_ratio(values, Metric::kernel_gbps, bytes, time);
}

// Adds no value where the clock is not known.
void add_load_latency(const Trace& whole, const Trace& trace, const PlannedStep& plan,
                      Values& values) {
  std::set<std::pair<int, std::int64_t>> launches;
  double loads = 0;
  double time = 0;
  for (const DeviceWork& work : trace.work) {
    if (work.operation < 0) continue;
    const auto* launch = std::get_if<LaunchKernel>(&operation_at(plan, work.operation).action);
    const auto loads_of = launch ? kernel(launch->kernel).cost.dependent_loads : nullptr;
    if (!loads_of) continue;
    time += seconds(work);
    if (!launches.emplace(work.operation, work.step).second) continue;
    loads += static_cast<double>(loads_of(launch->shape, launch->dtype, launch->attributes).count);
  }
  double hertz = 0;
  for (const ClockReading& reading : whole.clocks) hertz += reading.hertz;
  const auto readings = static_cast<double>(whole.clocks.size());
  add_ratio(values, Metric::cycles_per_load, time * hertz, loads * readings);
}

double loader_seconds(const Trace& trace, const StepPlan& plan) {
  double sum = 0;
  for (const HostSpan& span : trace.spans) {
    if (span.operation < 0) continue;
    const Operation& operation = plan.operations.at(static_cast<std::size_t>(span.operation));
    if (std::holds_alternative<TakeBatch>(operation.action)) sum += seconds(span);
  }
  return sum;
}

double blocked_seconds(const Trace& trace) {
  double sum = 0;
  for (const HostCall& call : trace.calls) {
    if (waits_for_device(call) && operation_of(trace, call) >= 0) sum += seconds(call);
  }
  return sum;
}

Metric metric_of(PageEventKind kind) {
  switch (kind) {
    case PageEventKind::device_faults:
      return Metric::page_faults_per_step;
    case PageEventKind::host_faults:
      return Metric::host_page_faults_per_step;
    case PageEventKind::to_device:
    case PageEventKind::to_host:
      return Metric::migrated_bytes_per_step;
  }
  require(false, "every event of a page is counted");
  return Metric::page_faults_per_step;
}

// A step without managed memory gets zeros even from a device that cannot record page events.
void add_page_events(const Trace& trace, const PlannedStep& plan, Values& values) {
  const bool managed = plan.facts().uses_managed_memory;
  if (managed && !trace.page_events) return;
  for (const Metric metric : {Metric::page_faults_per_step, Metric::host_page_faults_per_step,
                              Metric::migrated_bytes_per_step}) {
    values[metric] = 0;
  }
  if (!managed) return;
  for (const PageEvent& event : *trace.page_events) {
    values[metric_of(event.kind)] +=
        static_cast<double>(event.amount) / static_cast<double>(trace.steps);
  }
}

// Pauses between pieces of a phase's work do not count, and concurrent pieces count once.
// communication.h computes the time of collectives.
void add_phase_times(const Trace& trace, const StepPlan& plan, Values& values) {
  constexpr std::pair<Phase, Metric> phases[] = {{Phase::h2d, Metric::h2d_us},
                                                 {Phase::forward, Metric::forward_us},
                                                 {Phase::backward, Metric::backward_us},
                                                 {Phase::optimizer, Metric::optimizer_us}};
  const auto steps = static_cast<double>(trace.steps);
  for (const auto& [phase, metric] : phases) {
    std::vector<Interval> work;
    for (const DeviceWork& piece : trace.work) {
      if (piece.operation < 0 || piece.kind == WorkKind::collective) continue;
      if (operation_at(plan, piece.operation).phase == phase)
        work.push_back({piece.begin.count(), piece.end.count()});
    }
    values[metric] = seconds(length_of(union_of(std::move(work)))) / steps;
  }
  values[Metric::data_wait_us] = loader_seconds(trace, plan) / steps;
}

TimeBreakdown add_times(const Trace& whole, const Trace& trace, const PlannedStep& plan,
                        Values& values) {
  const TraceWindow window = window_of(whole, plan);
  const DeviceTime device = device_time(whole, plan, window);
  const TimeBreakdown split = time_breakdown(whole, plan, window, device);
  const double all = seconds(window.time.end - window.time.begin);
  const auto window_steps = static_cast<double>(window.steps);
  const double to_device = seconds(length_of(device.to_device));
  const double hidden = seconds(length_of(intersection_of(device.to_device, device.kernels)));
  const auto idle_share = [&](Metric metric, const IntervalUnion& busy) {
    add_ratio(values, metric, all - seconds(length_of(busy)), all);
  };
  idle_share(Metric::gpu_idle, device.busy);
  idle_share(Metric::kernel_idle, device.kernels);
  add_ratio(values, Metric::copy_overlap, hidden, to_device);
  add_ratio(values, Metric::h2d_share, to_device, all - (to_device - hidden));
  values[Metric::exposed_copy_us] = split.copies;
  const auto steps = static_cast<double>(trace.steps);
  add_ratio(values, Metric::data_share, loader_seconds(trace, plan) / steps,
            all / window_steps - split.idle_for_data);
  values[Metric::host_blocked_us] = blocked_seconds(trace) / steps;
  add_short_kernels(trace, values);
  add_copy_speed(trace, values);
  add_kernel_speed(trace, plan, values);
  add_load_latency(whole, trace, plan, values);
  add_phase_times(trace, plan, values);
  if (plan->ranks.count > 1) {
    add_communication(whole, plan, window, device, values);
  } else {
    for (const Metric metric :
         {Metric::comm_us, Metric::exposed_comm_us, Metric::skew_us, Metric::blocking_comm_us})
      values[metric] = 0;  // there is no other rank
  }
  return split;
}

std::array<PhaseSplit, phase_count> phases_of(const Trace& trace, const StepPlan& plan) {
  std::array<PhaseSplit, phase_count> phases{};
  const auto phase_of = [&](int operation) -> PhaseSplit& {
    const Phase phase = plan.operations.at(static_cast<std::size_t>(operation)).phase;
    return phases[static_cast<std::size_t>(phase)];
  };
  for (const DeviceWork& work : trace.work) {
    if (work.operation < 0 || work.kind == WorkKind::collective) continue;
    phase_of(work.operation).device_busy += seconds(work);
    if (work.kind == WorkKind::copy) phase_of(work.operation).copying += seconds(work);
  }
  for (const HostCall& call : trace.calls) {
    const int operation = operation_of(trace, call);
    if (operation < 0 || !waits_for_device(call)) continue;
    phase_of(operation).host_blocked += seconds(call);
    if (call.can_block) phase_of(operation).host_waits += 1;
  }
  const auto steps = static_cast<double>(trace.steps);
  for (PhaseSplit& phase : phases) {
    phase.host_blocked /= steps;
    phase.device_busy /= steps;
    phase.host_waits /= steps;
    phase.copying /= steps;
  }
  return phases;
}

std::vector<CopyTally> copies_of(const Trace& trace) {
  std::map<std::pair<CopyEnd, CopyEnd>, CopyTally> tallies;
  const auto steps = static_cast<double>(trace.steps);
  for (const DeviceWork& work : trace.work) {
    if (work.operation < 0 || work.kind != WorkKind::copy) continue;
    CopyTally& tally = tallies[{work.from, work.to}];
    tally.copies += 1;
    tally.bytes += static_cast<double>(work.bytes);
  }
  std::vector<CopyTally> copies;
  for (const auto& [ends, tally] : tallies) {
    copies.push_back({ends.first, ends.second, tally.copies / steps, tally.bytes / steps});
  }
  return copies;
}

std::string_view name_of_other_work(WorkKind kind) {
  if (kind == WorkKind::copy) return "(copies)";
  return kind == WorkKind::collective ? "(collectives)" : "(fills)";
}

// Counts a launch that runs several kernels once.
WorkTimes work_of(const Trace& trace, const StepPlan& plan) {
  WorkTimes times;
  std::set<std::pair<int, std::int64_t>> launches;
  for (const DeviceWork& work : trace.work) {
    if (work.operation < 0) continue;
    const auto* launch = std::get_if<LaunchKernel>(&operation_at(plan, work.operation).action);
    WorkTime& time =
        times[std::string(launch ? launch->kernel.name() : name_of_other_work(work.kind))];
    time.seconds += seconds(work);
    if (!launch || launches.emplace(work.operation, work.step).second) time.times += 1;
  }
  const auto steps = static_cast<double>(trace.steps);
  for (auto& [name, time] : times) {
    time.times /= steps;
    time.seconds /= steps;
  }
  return times;
}

// A user's library says how many kernels it launches, and each of them counts.
bool is_of_a_library(const StepPlan& plan, int operation) {
  const auto* launch =
      operation < 0 ? nullptr : std::get_if<LaunchKernel>(&operation_at(plan, operation).action);
  return launch != nullptr && kernel(launch->kernel).replacement.has_value();
}

}  // namespace

double amount_of(const Trace& trace, const HostCall& call, const StepPlan& plan, Metric metric) {
  switch (metric) {
    case Metric::launches_per_step:
      if (is_collective(plan, operation_of(trace, call))) return 0;
      if (call.kind == CallKind::graph_launch) return 1;
      return call.kind == CallKind::launch && (is_of_a_library(plan, operation_of(trace, call)) ||
                                               begins_a_launch(trace, call))
                 ? 1
                 : 0;
    case Metric::host_waits_per_step:
      return call.can_block ? 1 : 0;
    case Metric::device_syncs_per_step:
      return call.kind == CallKind::wait_for_device ? 1 : 0;
    case Metric::polls_per_step:
      return call.kind == CallKind::poll ? 1 : 0;
    case Metric::device_allocs_per_step:
      return call.kind == CallKind::allocate ? 1 : 0;
    case Metric::device_frees_per_step:
      return call.kind == CallKind::release ? 1 : 0;
    case Metric::pinned_allocs_per_step:
      return call.kind == CallKind::pin ? 1 : 0;
    default:
      return 0;
  }
}

double amount_of(const DeviceWork& work, const StepPlan& plan, Metric metric) {
  const bool copy = work.kind == WorkKind::copy;
  const bool pageable = work.from == CopyEnd::pageable || work.to == CopyEnd::pageable;
  switch (metric) {
    case Metric::copies_per_step:
      return copy ? 1 : 0;
    case Metric::copy_bytes_per_step:
      return copy ? static_cast<double>(work.bytes) : 0;
    case Metric::pageable_copies_per_step:
      return copy && pageable ? 1 : 0;
    case Metric::memset_bytes_per_step:
      return is_own_fill(work, plan) ? static_cast<double>(work.bytes) : 0;
    case Metric::all_reduces_per_step:
      return work.collective == CollectiveKind::all_reduce ? 1 : 0;
    case Metric::reduce_scatters_per_step:
      return work.collective == CollectiveKind::reduce_scatter ? 1 : 0;
    case Metric::all_gathers_per_step:
      return work.collective == CollectiveKind::all_gather ? 1 : 0;
    case Metric::broadcasts_per_step:
      return work.collective == CollectiveKind::broadcast ? 1 : 0;
    case Metric::payload_bytes_per_step:
      return work.kind == WorkKind::collective ? static_cast<double>(work.bytes) : 0;
    default:
      return 0;
  }
}

Trace counted_part(Trace trace) {
  if (trace.closing_steps == 0) return trace;
  trace.steps -= std::exchange(trace.closing_steps, 0);
  const std::int64_t end = trace.first_step + trace.steps;
  // The spans of the host are ordered by step.
  const auto closing =
      std::ranges::find_if(trace.spans, [&](const HostSpan& span) { return span.step >= end; });
  const auto kept = static_cast<int>(closing - trace.spans.begin());
  const TraceTime until = closing == trace.spans.end() ? TraceTime::max() : closing->begin;
  trace.spans.erase(closing, trace.spans.end());
  std::erase_if(trace.calls, [&](const HostCall& call) {
    return call.span < 0 ? call.begin >= until : call.span >= kept;
  });
  std::erase_if(trace.work, [&](const DeviceWork& work) { return work.step >= end; });
  std::erase_if(trace.arrivals, [&](const RankArrival& at) { return at.step >= end; });
  std::erase_if(trace.memory_changes, [&](const MemoryChange& made) { return made.at >= until; });
  std::erase_if(trace.clocks, [&](const ClockReading& read) { return read.at >= until; });
  if (trace.page_events)
    std::erase_if(*trace.page_events, [&](const PageEvent& event) { return event.begin >= until; });
  return trace;
}

TracedStep summary_of(const Trace& whole, const PlannedStep& plan) {
  const Trace trace = counted_part(whole);
  require(trace.steps > 0, "a trace holds at least one step");
  TracedStep summary;
  summary.rank = trace.rank;
  add_counts(trace, plan, summary.values);
  add_page_events(trace, plan, summary.values);
  summary.time = add_times(whole, trace, plan, summary.values);
  summary.phases = phases_of(trace, plan);
  summary.copies = copies_of(trace);
  summary.work = work_of(trace, plan);
  summary.memory = trace.memory;
  if (trace.memory.driver_bytes)
    summary.values[Metric::driver_used] = static_cast<double>(*trace.memory.driver_bytes);
  for (const Unsteady& unsteady : trace.unsteady) ++summary.unsteady[unsteady.kind];
  summary.library = trace.library;
  summary.on_another_stream = difference_of_streams(trace, plan);
  return summary;
}

}  // namespace stepgate
