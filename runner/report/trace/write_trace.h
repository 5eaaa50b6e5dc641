// SPDX-License-Identifier: MIT
// Writes a trace as a file in the format of the PyTorch profiler, which Perfetto and
// chrome://tracing show and HolisticTraceAnalysis reads.
//
// A file holds one variant. HolisticTraceAnalysis expects one rank per file, with the GPU as
// process 0 and its streams as threads, and numbers steps by ProfilerStep#n. It would read two
// variants in one file as one rank that runs every step twice. To compare variants, draw them
// (pictures.h) or open two tabs.
//
// The file holds all ranks, and the process number of a GPU is its rank. So viewers show the ranks
// on one time axis, but HolisticTraceAnalysis cannot distinguish them.
#pragma once

#include <filesystem>
#include <iosfwd>
#include <span>

#include "device/device.h"
#include "device/trace.h"
#include "plan/step_plan.h"

namespace stepgate {

// "out/t.json" becomes "out/t.<scenario>.<variant>.json". The ending is added if missing, since
// tools require it.
std::filesystem::path trace_file(const std::filesystem::path& asked_for, const StepPlan&);

struct TraceDocument {
  const DeviceIdentity& device;
  const StepPlan& plan;
  std::span<const Trace> ranks;  // at least one, by rank
};

// Rows of each rank: the host with nested steps, phases, operations and calls; every stream with
// its phases and extra rows for overlaps; and waits of the host. Arrows lead from a call to its
// work. Counters show memory held and work in progress.
void write_trace(std::ostream&, const TraceDocument&);

}  // namespace stepgate
