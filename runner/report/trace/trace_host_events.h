// SPDX-License-Identifier: MIT
// Events of the host's thread as a trace file shows them: steps, in them phases, in them
// operations, in them calls. Says also which work its waits were for. write_trace.cpp writes them.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "device/trace.h"
#include "plan/step_plan.h"
#include "report/trace/trace_rows.h"

namespace stepgate {

// One stretch of the host's thread; deeper ones lie within.
struct HostEvent {
  Stretch when;
  int depth = 0;
  std::string_view category;
  std::string name;
  std::string arguments;
  int call = -1;  // index into Trace::calls
};

// By their begin, outer ones first. `correlations`: the numbers of the calls.
std::vector<HostEvent> host_events(const StepPlan&, const Trace&,
                                   std::span<const std::int64_t> correlations);

struct WaitedFor {
  std::int64_t stream = -1;       // as written in the file; -1: all, or not known
  std::int64_t recorded_by = -1;  // the number of the call that recorded the event
};

// The work that every explicit wait waited for, by the index of its call. `streams`: their numbers
// in the file, by what the plan calls them.
std::map<std::size_t, WaitedFor> waited_for(const StepPlan&, const Trace&,
                                            std::span<const std::int64_t> correlations,
                                            const std::map<std::string, std::int64_t>& streams);

}  // namespace stepgate
