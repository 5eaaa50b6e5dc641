// SPDX-License-Identifier: MIT
// Runs the tracing process of a run: this program again, before anything is timed. It ends before
// timing starts. A process that has traced once stays slow.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "line/planned.h"
#include "line/progress_sink.h"
#include "line/trace/trace_planned.h"
#include "measure/trace/traced.h"

namespace stepgate {

// The answer of the process after the scenario that lost its device; later scenarios have no
// traces.
constexpr std::string_view tracer_lost_its_device = "lost";

// The order in which scenarios are traced, as indices. Those with managed memory come last: once a
// process has counted page events, every later trace waits for such counts, 13 ms on an H200.
std::vector<std::size_t> tracing_order(std::span<const Planned>);

// The traces of each of these scenarios of the run, in their order. The process failing is no error
// of the run: every scenario without a trace says why.
std::vector<Traced> trace_all(const LineArguments&, std::span<const Planned>, std::uint64_t seed,
                              Timelines, const ProgressSink&);

// Requests that the process traces a scenario into a file.
struct TraceLine {
  std::string scenario;
  std::string into;
  bool with_timelines = false;
};
std::string to_line(const TraceLine&);
TraceLine read_trace_line(const std::string&);

// The knobs that were calibrated, as the scenarios must be planned with them.
void apply_calibrations(std::vector<Planned>&, const LineArguments&, std::uint64_t seed);

}  // namespace stepgate
