// SPDX-License-Identifier: MIT
// Traces a few steady steps of every variant in repeated rounds until the limit of rounds or
// seconds is reached. Runs in a process of its own: tracing slows the device, so nothing is timed
// here.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "device/device.h"
#include "measure/trace/traced.h"
#include "plan/planned_step.h"

namespace stepgate {

// Limit of the traces that are kept as timelines, in bytes.
inline constexpr std::int64_t most_timeline_bytes = 128 << 20;

// The approximate bytes that keeping a trace takes.
std::int64_t bytes_kept(const Trace&);

struct TraceRequest {
  std::int64_t rounds = 1;  // at least 1
  // An assertion with too few rounds is undecided. So max_seconds does not end tracing before this
  // number of rounds, unless five times max_seconds have passed. The first round is always made.
  std::int64_t enough_rounds = 1;
  // Called after each round; true ends tracing, since no assertion is undecided.
  std::function<bool(const Traced&)> nothing_open = {};
  // The step time is measured before the first trace of a variant, which loads its kernels into
  // device memory that the driver counts for the loaded step. If true, a separate load is used for
  // this. If false, the first trace's load is used, and its `driver_used` is unknown.
  bool tells_driver_used = true;
  double max_seconds = 30;  // by the device's clock; no round begins later
  std::int64_t timeline_bytes = most_timeline_bytes;  // above them no timelines are kept
  std::uint64_t seed = 0;                             // of the random orders
};

// Returns the number of steps in one trace of these plans; `step_time` is the longest of their step
// times. The traces of all `rounds` (1 to 4) have 20 steps together, or as many as take 10 ms, but
// at least 4.
// The steps of a trace are rounded up so that everything periodic happens equally often. Periods
// are ignored where this would need more than 200 steps.
std::int64_t traced_steps(std::span<const PlannedStep>, std::chrono::nanoseconds step_time,
                          std::int64_t rounds = 1);

// Returns the approximate time of a loaded step, at least 1 ns. Runs two steps and uses the second,
// since the first one loads kernels. 1 ns where the device does not measure time.
std::chrono::nanoseconds pilot_step_time(LoadedStep&);

// Returns the steps of a variant that are run before steps are looked at, until its queue is as
// deep as it gets. A host that is slightly faster than its device, or a loader that is slightly
// faster than the steps, gains only a fraction of a step with each step.
std::int64_t steps_until_steady(const PlannedStep&, std::chrono::nanoseconds step_time);

// Returns one trace for every rank of a loaded step, once its queue is as deep as it gets. A trace
// has `steps` steps and those that close it. A step takes about `step_time`, at least 1 ns. Empty
// where the device recorded none.
std::vector<Trace> trace_loaded(LoadedStep&, const PlannedStep&, std::chrono::nanoseconds step_time,
                                std::int64_t steps);

// In each round, every variant is loaded anew, one at a time into the same slot, in a random order,
// and traced once its queue is as deep as it gets. `unavailable` is set where the device cannot
// trace. Needs at least one plan. Throws DeviceError.
Traced trace_rounds(Device&, std::span<const PlannedStep>, const TraceRequest&);

}  // namespace stepgate
