// SPDX-License-Identifier: MIT
#include "report/trace/trace_counters.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <unordered_map>
#include <vector>

namespace stepgate {
namespace {

struct Curve {
  std::string_view name;
  std::string_view series;
  std::int64_t process = 0;
};

// Times at which something grows or shrinks, to its value from then on.
using Changes = std::map<TraceTime, std::int64_t>;

void write_curve(TraceEvents& events, const Curve& curve, TraceTime from, std::int64_t value,
                 const Changes& changes) {
  events.counter(curve.name, curve.process, from, curve.series, value);
  for (const auto& [at, change] : changes) {
    if (change == 0) continue;
    value += change;
    events.counter(curve.name, curve.process, at, curve.series, value);
  }
}

// The memory that is held when the file begins follows from the most that was held, unless the
// trace goes back to where nothing was held.
void write_memory(TraceEvents& events, const Curve& curve, TraceTime from, const Trace& trace,
                  MemoryKind kind, std::int64_t most_held) {
  Changes changes;
  std::int64_t before = 0;
  bool goes_back = false;
  for (const MemoryChange& change : trace.memory_changes) {
    if (change.memory != kind) continue;
    if (change.at < from) {
      before += change.bytes;
      goes_back = true;
    } else {
      changes[change.at] += change.bytes;
    }
  }
  std::int64_t value = 0;
  std::int64_t most = 0;
  for (const auto& [at, change] : changes) most = std::max(most, value += change);
  if (!goes_back) before = std::max<std::int64_t>(0, most_held - most);
  write_curve(events, curve, from, before, changes);
}

void write_under_way(TraceEvents& events, const Curve& curve, TraceTime from, const Trace& trace) {
  std::unordered_map<std::uint32_t, TraceTime> issued;
  for (const HostCall& call : trace.calls) {
    if (call.correlation != 0) issued.emplace(call.correlation, call.begin);
  }
  Changes changes;
  for (const DeviceWork& work : trace.work) {
    const auto call = issued.find(work.correlation);
    if (call == issued.end()) continue;
    ++changes[call->second];
    --changes[work.end];
  }
  write_curve(events, curve, from, 0, changes);
}

// A reading is of the time before it, so a curve steps to it where the one before was taken.
void write_clocks(TraceEvents& events, const Curve& curve, TraceTime from, const Trace& trace) {
  constexpr double hertz_per_megahertz = 1e6;
  TraceTime since = from;
  for (const ClockReading& clock : trace.clocks) {
    events.counter(curve.name, curve.process, since, curve.series,
                   std::lround(clock.hertz / hertz_per_megahertz));
    since = std::max(from, clock.at);
  }
}

// In all since the file begins.
void write_migrated(TraceEvents& events, const Curve& curve, TraceTime from, const Trace& trace) {
  Changes changes;
  for (const PageEvent& event : trace.page_events.value_or(std::vector<PageEvent>{})) {
    const bool moves =
        event.kind == PageEventKind::to_device || event.kind == PageEventKind::to_host;
    if (moves) changes[std::max(from, event.end)] += event.amount;
  }
  if (!changes.empty()) write_curve(events, curve, from, 0, changes);
}

}  // namespace

void write_counters(TraceEvents& events, std::int64_t process, TraceTime from, const Trace& trace) {
  write_memory(events, {"device memory", "bytes", process}, from, trace, MemoryKind::device,
               trace.memory.peak_reserved_bytes);
  write_memory(events, {"pinned memory", "bytes", process}, from, trace, MemoryKind::pinned,
               trace.memory.pinned_bytes);
  write_under_way(events, {"issued and not done", "pieces of work", process}, from, trace);
  write_clocks(events, {"SM clock", "MHz", process}, from, trace);
  write_migrated(events, {"managed memory moved", "bytes", process}, from, trace);
}

}  // namespace stepgate
