// SPDX-License-Identifier: MIT
// Writes a trace's curves: memory held, work under way, the clock, managed memory that moved.
#pragma once

#include "device/trace.h"
#include "report/trace/trace_events.h"

namespace stepgate {

// `process`: the row that the curves belong to. `from`: where the file begins.
void write_counters(TraceEvents&, std::int64_t process, TraceTime from, const Trace&);

}  // namespace stepgate
