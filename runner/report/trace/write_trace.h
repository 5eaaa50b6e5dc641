// SPDX-License-Identifier: MIT
// A trace as a file that people open: in the form of the PyTorch profiler, which Perfetto and
// chrome://tracing show and HolisticTraceAnalysis reads.
//
// A file holds one variant. HolisticTraceAnalysis takes a file for one rank, with the GPU at
// process 0 and its streams as threads, and numbers steps by ProfilerStep#n; two variants in one
// file would be one rank that runs every step twice. To see both at once, draw them (pictures.h) or
// open two tabs. The file holds all ranks, and the process number of a GPU is its rank. So viewers
// show the ranks on one time axis, but HolisticTraceAnalysis cannot tell them apart.
#pragma once

#include <filesystem>
#include <iosfwd>
#include <span>

#include "device/device.h"
#include "device/trace.h"
#include "plan/step_plan.h"

namespace stepgate {

// "out/t.json" becomes "out/t.<scenario>.<variant>.json". Tools insist on the ending, so a file
// without it gets it.
std::filesystem::path trace_file(const std::filesystem::path& asked_for, const StepPlan&);

struct TraceDocument {
  const DeviceIdentity& device;
  const StepPlan& plan;
  std::span<const Trace> ranks;  // at least one, by rank
};

// Rows of each rank: the host (steps, in them phases, in them operations, in them calls); every
// stream, with rows of its own for what overlaps, and its phases; waits of the host. Arrows lead
// from a call to the work that it caused; counters say what memory is held and how much work is
// under way.
void write_trace(std::ostream&, const TraceDocument&);

}  // namespace stepgate
