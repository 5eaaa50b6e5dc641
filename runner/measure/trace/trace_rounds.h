// SPDX-License-Identifier: MIT
// Traces a few steady steps of every variant, again and again until rounds or seconds are spent.
// For a process of its own: a device that traces is slower, so nothing is timed here.
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

struct TraceRequest {
  std::int64_t rounds = 1;  // at least 1
  // An assertion that lacks rounds is not decided at all, so the time ends nothing before there are
  // enough, unless it is up five times over. The first round always is made.
  std::int64_t enough_rounds = 1;
  // Asked after each round: when nothing is open, no further one is begun.
  std::function<bool(const Traced&)> nothing_open = {};
  // The step time is measured before the first trace of a variant. This loads its kernels, into
  // device memory that the driver counts for the loaded step. If true, a separate load serves the
  // measurement; if false, the first trace does, and its `driver_used` is unknown.
  bool tells_driver_used = true;
  double max_seconds = 30;  // of the device's clock; after that no further round is begun
  std::uint64_t seed = 0;   // of the orders
};

// How many steps a trace of these plans holds; `step_time` is the longest of their step times. The
// traces of all `rounds` (1 to 4) have 20 steps together, or as many as take 10 ms, but at least 4.
// A trace's are rounded up so that everything that happens every n steps happens equally often;
// events that would need more than 200 are not waited for.
std::int64_t traced_steps(std::span<const PlannedStep>, std::chrono::nanoseconds step_time,
                          std::int64_t rounds = 1);

// About how long a loaded step takes, at least 1 ns: its second one, since the first loads kernels.
// A device that does not know the time may be as fast as it likes.
std::chrono::nanoseconds pilot_step_time(LoadedStep&);

// One trace of a loaded step, of every rank, once its queue is as deep as it gets: of so many steps
// and those that close it. A step takes about `step_time`, at least 1 ns. Empty where the device
// recorded none.
std::vector<Trace> trace_loaded(LoadedStep&, const PlannedStep&, std::chrono::nanoseconds step_time,
                                std::int64_t steps);

// In each round every variant is loaded anew, one at a time into the same slot, in a random order,
// and traced once its queue is as deep as it gets. `unavailable` where the device cannot trace. At
// least one plan. Throws DeviceError.
Traced trace_rounds(Device&, std::span<const PlannedStep>, const TraceRequest&);

}  // namespace stepgate
