// SPDX-License-Identifier: MIT
// Chooses the part of the variants' traces that a picture shows; draw_timeline draws it. Ranks of
// one clock begin at one moment, those of several clocks each with a step of its own.
#pragma once

#include <span>
#include <vector>

#include "device/trace.h"
#include "report/trace/trace_rows.h"

namespace stepgate {

struct Window {
  TraceTime begin{0};
  Stretch host_recorded;    // what the trace covers of the host, and of the device
  Stretch device_recorded;  // likewise
};

struct Windows {
  TraceTime length{0};                           // the same for all
  std::vector<std::vector<Window>> of_variants;  // of their ranks
};

using TracesOfRanks = std::vector<const Trace*>;

// Each begins where the device begins a step that host and device are both recorded from on, if
// there is one. Long enough for `steps` of the slowest variant, where the traces are.
Windows windows_of(std::span<const TracesOfRanks> variants, double steps);

// When the stream with the most work is busy with what the host issued at a step.
std::vector<NumberedStep> steps_of_the_device(const Trace&);

}  // namespace stepgate
