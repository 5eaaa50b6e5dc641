// SPDX-License-Identifier: MIT
// Computes, from a trace, when device and host did what: unions of intervals within one window of
// whole steps.
#pragma once

#include <string_view>
#include <utility>
#include <vector>
#include "base/stats/interval_union.h"
#include "measure/trace/traced.h"
#include "plan/planned_step.h"

namespace stepgate {

// The window of a trace: from the begin of the first step's first work to the begin of the last
// step's first work, so that it holds as many pauses between steps as steps. Only work that is
// ordered with the kernels opens or closes it. A copy on a side stream belongs to a later step and
// may run beside untraced steps.
// For the same reason, the window begins as many steps late as the plan prefetches, so that every
// copy in it was traced. Where no step closes the trace, or the closing step has no ordered work,
// it ends with the last work and holds one pause less.
struct TraceWindow {
  Interval time;
  std::int64_t steps = 0;
};

TraceWindow window_of(const Trace&, const PlannedStep&);

// Device time within the window, by what limits it. Only operations of the plan count; migrations
// of pages count as copies.
struct DeviceTime {
  IntervalUnion math;  // kernels limited by arithmetic, by the plan's formula, and spinning kernels
  IntervalUnion latency;  // kernels whose loads depend on each other
  IntervalUnion memory;   // all other kernels
  IntervalUnion kernels;
  IntervalUnion copies;
  IntervalUnion to_device;  // copies from the host
  IntervalUnion fills;
  IntervalUnion collectives;  // including their waits for other ranks
  IntervalUnion busy;
};

DeviceTime device_time(const Trace&, const PlannedStep&, const TraceWindow&);

// Partitions the window. Where several kinds run at once, the first of math, memory, latency,
// copies and communication counts.
// Idle time is the host's until the next work could have begun: its call plus the lowest latency
// seen for that kind of call. If the host was waiting for the device when the device ran dry, all
// of it is `idle_after_wait`. So is the time for refilling the queue, as far as the host would have
// kept up without its waits. Otherwise, time spent with the loader, or writing the batch into
// managed memory, is `idle_for_data`, and the rest is `idle_for_host`.
// The remaining idle time is the device's own, `idle_in_queue`.
TimeBreakdown time_breakdown(const Trace&, const StepPlan&, const TraceWindow&, const DeviceTime&);
// The same of a trace without a plan: `loader` is the time that the host spent with its loader.
TimeBreakdown time_breakdown(const Trace&, const IntervalUnion& loader, const TraceWindow&,
                             const DeviceTime&);

// Returns whether a call waits for the device, by blocking or by polling.
bool waits_for_device(const HostCall&);

// Returns whether a copy reads host memory.
bool is_to_device(const DeviceWork&);

// Returns the operation of a call; -1 where it belongs to no operation of the plan.
int operation_of(const Trace&, const HostCall&);

// Returns the time of the step and of its parts, by their names in files and protocols.
std::vector<std::pair<std::string_view, double>> named_parts(const TimeBreakdown&);

}  // namespace stepgate
