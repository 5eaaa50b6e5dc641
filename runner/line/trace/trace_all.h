// SPDX-License-Identifier: MIT
// Runs the tracing process of a run, which is this program again. It ends before timing starts,
// since a process that has traced once stays slow. One process traces all scenarios, since each
// would open CUDA and CUPTI again. So what counts decide is told as each trace is made.
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

// The tracing process answers this after the scenario that lost its device; later scenarios have no
// traces.
constexpr std::string_view tracer_lost_its_device = "lost";

// The order in which scenarios are traced, as indices. Scenarios with managed memory come last:
// once a process has counted page events, every later trace waits for such counts, 13 ms on an
// H200.
std::vector<std::size_t> tracing_order(std::span<const Planned>);

// Traces these scenarios of the run, in their order. If the tracing process fails, the run
// continues: every scenario without a trace has the reason.
std::vector<Traced> trace_all(const LineArguments&, std::span<const Planned>, std::uint64_t seed,
                              Timelines, const ProgressSink&);

// A request that the tracing process traces a scenario into a file.
struct TraceLine {
  std::string file;
  std::string scenario;  // by name, since the points of a sweep are of one file
  std::string into;
  bool with_timelines = false;
};
std::string to_line(const TraceLine&);
TraceLine read_trace_line(const std::string&);

// Plans again the scenarios whose knobs were calibrated, with the calibrated values.
void apply_calibrations(std::vector<Planned>&, const LineArguments&, std::uint64_t seed);

}  // namespace stepgate
