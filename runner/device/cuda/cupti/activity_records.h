// SPDX-License-Identifier: MIT
// Records of a profiling library, before anybody knows what they belong to. Needs no CUDA toolkit,
// so that making a trace of them can be tested anywhere.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "device/trace.h"

namespace stepgate {

struct CallRecord {
  std::string name;  // plain: "cudaMemcpyAsync"
  bool of_driver = false;
  std::uint32_t correlation = 0;
  TraceTime begin{0};
  TraceTime end{0};
};

// In no particular order.
struct ActivityRecords {
  std::vector<CallRecord> calls;
  std::vector<DeviceWork> work;  // without operation and step
  std::vector<MemoryChange> memory_changes;
  std::vector<Unsteady> unsteady;
  std::optional<std::vector<PageEvent>> page_events;  // absent where they are not recorded
  // The operation of each piece of work of the step's graph, in its order. A library may have made
  // several of one.
  std::vector<int> graph_work;
  std::chrono::nanoseconds collected_in{0};  // wall time
};

// The trace of these steps. A call belongs to the span that it began in; work, to the call that it
// is correlated with; what belongs to no span is left out. Calls of the driver inside a call of the
// runtime are that call. Of work from a graph, the n-th in time is the n-th that was captured:
// collectives of each kind by themselves, which are on a stream beside the rest, and of all else,
// whatever streams it was captured on. It was collected in the time of the records and its own.
Trace assemble_trace(const StepPlan&, ActivityRecords, std::vector<HostSpan>,
                     std::int64_t first_step, std::int64_t steps);

}  // namespace stepgate
