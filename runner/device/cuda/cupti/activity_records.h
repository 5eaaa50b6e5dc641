// SPDX-License-Identifier: MIT
// Records of a profiling library before they are matched to operations. This code needs no CUDA
// toolkit, so that tests of assemble_trace run anywhere.
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

// The records are in no particular order.
struct ActivityRecords {
  std::vector<CallRecord> calls;
  std::vector<DeviceWork> work;  // without operation and step
  std::vector<MemoryChange> memory_changes;
  std::vector<Unsteady> unsteady;
  std::optional<std::vector<PageEvent>> page_events;  // absent where they are not recorded
  // The operation of each piece of work in the step's graph, in order. A library may launch several
  // kernels for one operation.
  std::vector<int> graph_work;
  std::chrono::nanoseconds collected_in{0};  // wall time
};

// Assembles the trace of these steps. A call belongs to the span in which it began, and work to the
// call with its correlation id. Work outside of all spans is left out. A driver call inside a
// runtime call counts as that runtime call. The n-th work of a graph in time is the n-th captured
// work. Collectives of each kind are counted apart from all other work, since they run on another
// stream. The collection time is that of the records plus the time of this function.
Trace assemble_trace(const StepPlan&, ActivityRecords, std::vector<HostSpan>,
                     std::int64_t first_step, std::int64_t steps);

}  // namespace stepgate
