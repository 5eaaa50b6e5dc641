// SPDX-License-Identifier: MIT
// When device and host did what, in a trace: unions of intervals within one window of whole steps.
#pragma once

#include <string_view>
#include <utility>
#include <vector>
#include "base/stats/interval_union.h"
#include "measure/trace/traced.h"
#include "plan/planned_step.h"

namespace stepgate {

// From the begin of a step's first work to that of the last step's first work, of what is queued in
// order with the kernels: it holds as many pauses between steps as steps. A copy on a side stream
// belongs to a later step and opens and closes nothing: it may run beside steps that were not
// traced. For the same reason the window begins as many steps late as the plan prefetches; then
// every copy in it was traced. Where no step closes the trace, or has work in order, it ends with
// the last work and holds one pause less.
struct TraceWindow {
  Interval time;
  std::int64_t steps = 0;
};

TraceWindow window_of(const Trace&, const PlannedStep&);

// Work within the window, by what limits it. Only work of the plan's operations; pages that move
// are copies.
struct DeviceTime {
  IntervalUnion math;     // kernels limited by their arithmetic, by the plan's formula; and spins
  IntervalUnion latency;  // kernels whose loads wait for each other
  IntervalUnion memory;   // all other kernels
  IntervalUnion kernels;
  IntervalUnion copies;
  IntervalUnion to_device;  // copies from the host
  IntervalUnion fills;
  IntervalUnion collectives;  // which also wait for ranks that have not come
  IntervalUnion busy;
};

DeviceTime device_time(const Trace&, const PlannedStep&, const TraceWindow&);

// Partition of the window. Where several kinds run at once the first of math, memory, latency,
// copies, communication counts. Idle time until the next work could have begun, as soon after its
// call as that kind of call ever took effect, is the host's: if the host was waiting for the device
// when the device ran dry, all that follows is `idle_after_wait`; so is what the queue takes to
// fill again, as far as the host would have kept up without its waits; otherwise what was spent
// with the loader, or with writing the batch into managed memory, is `idle_for_data` and the rest
// `idle_for_host`. Idle time that is left is the device's own, `idle_in_queue`.
TimeBreakdown time_breakdown(const Trace&, const StepPlan&, const TraceWindow&, const DeviceTime&);

// In a call that waits for the device: it can block, or it asks until the answer is yes.
bool waits_for_device(const HostCall&);

// From host memory.
bool is_to_device(const DeviceWork&);

// The operation of a call; -1 where it is none of the plan.
int operation_of(const Trace&, const HostCall&);

// The whole step and its parts by the names that files and protocols use.
std::vector<std::pair<std::string_view, double>> named_parts(const TimeBreakdown&);

}  // namespace stepgate
