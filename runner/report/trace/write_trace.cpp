// SPDX-License-Identifier: MIT
#include "report/trace/write_trace.h"

#include <fmt/format.h>
#include <fmt/ostream.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <ostream>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/require.h"
#include "device/trace.h"
#include "measure/trace/meetings.h"
#include "plan/compose/step_names.h"
#include "plan/step_plan.h"
#include "report/trace/trace_events.h"
#include "report/trace/trace_rows.h"

namespace stepgate {
namespace {

struct Curve {
  std::string_view name;
  std::string_view series;
  std::int64_t process = 0;
};

// Changes of a value over time: the new value from each time on.
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

// Writes the memory curve. Its initial value follows from the largest value, unless the trace shows
// when nothing was held.
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

// A reading describes the time before it, so the curve changes at the time of the previous reading.
void write_clocks(TraceEvents& events, const Curve& curve, TraceTime from, const Trace& trace) {
  constexpr double hertz_per_megahertz = 1e6;
  TraceTime since = from;
  for (const ClockReading& clock : trace.clocks) {
    events.counter(curve.name, curve.process, since, curve.series,
                   std::lround(clock.hertz / hertz_per_megahertz));
    since = std::max(from, clock.at);
  }
}

// Writes the sum since the begin of the file.
void write_migrated(TraceEvents& events, const Curve& curve, TraceTime from, const Trace& trace) {
  Changes changes;
  for (const PageEvent& event : trace.page_events.value_or(std::vector<PageEvent>{})) {
    const bool moves =
        event.kind == PageEventKind::to_device || event.kind == PageEventKind::to_host;
    if (moves) changes[std::max(from, event.end)] += event.amount;
  }
  if (!changes.empty()) write_curve(events, curve, from, 0, changes);
}

// Writes a trace's counters: memory held, work in progress, clock rate, and migrated managed
// memory. `process` is their row, and `from` is the begin of the file.
void write_counters(TraceEvents& events, std::int64_t process, TraceTime from, const Trace& trace) {
  write_memory(events, {"device memory", "bytes", process}, from, trace, MemoryKind::device,
               trace.memory.peak_reserved_bytes);
  write_memory(events, {"pinned memory", "bytes", process}, from, trace, MemoryKind::pinned,
               trace.memory.pinned_bytes);
  write_under_way(events, {"issued and not done", "pieces of work", process}, from, trace);
  write_clocks(events, {"SM clock", "MHz", process}, from, trace);
  write_migrated(events, {"managed memory moved", "bytes", process}, from, trace);
}

// One event of the host's thread; nested events lie within it.
struct HostEvent {
  Stretch when;
  int depth = 0;
  std::string_view category;
  std::string name;
  std::string arguments;
  int call = -1;  // index into Trace::calls
};

struct WaitedFor {
  std::int64_t stream = -1;       // as in the file; -1: all, or unknown
  std::int64_t recorded_by = -1;  // number of the call that recorded the event
};

bool is_explicit_wait(const HostCall& call) {
  return call.kind == CallKind::wait_for_device || call.kind == CallKind::wait_for_stream ||
         call.kind == CallKind::wait_for_event;
}

void collect_spans(const StepPlan& plan, const Trace& trace, std::vector<HostEvent>& events) {
  std::vector<bool> calls(trace.spans.size());
  for (const HostCall& call : trace.calls) {
    if (call.span >= 0) calls.at(static_cast<std::size_t>(call.span)) = true;
  }
  for (std::size_t index = 0; index < trace.spans.size(); ++index) {
    const HostSpan& span = trace.spans[index];
    // Operations in a graph take no host time when the graph is launched.
    if (span.begin == span.end && !calls[index]) continue;
    if (span.operation < 0) {
      events.push_back(
          {{span.begin, span.end}, 2, "user_annotation", "stepgate: not part of the step", {}});
      continue;
    }
    events.push_back(
        {{span.begin, span.end},
         2,
         "cpu_op",
         operation_at(plan, span.operation).name,
         fmt::format(R"("External id":{},"acts for step":{})", index + 1, span.acts_for)});
  }
}

void collect_calls(const Trace& trace, std::span<const std::int64_t> correlations,
                   std::vector<HostEvent>& events) {
  for (std::size_t index = 0; index < trace.calls.size(); ++index) {
    const HostCall& call = trace.calls[index];
    const bool of_the_driver = call.name.starts_with("cu") && !call.name.starts_with("cuda");
    events.push_back({{call.begin, call.end},
                      3,
                      of_the_driver ? "cuda_driver" : "cuda_runtime",
                      call.name,
                      arguments_of_call(call, {call.span + 1, correlations[index]}),
                      static_cast<int>(index)});
  }
}

// Returns the host's events by their begin, outer ones first. `correlations` has the numbers of the
// calls.
std::vector<HostEvent> host_events(const StepPlan& plan, const Trace& trace,
                                   std::span<const std::int64_t> correlations) {
  std::vector<HostEvent> events;
  for (const NumberedStep& step : steps_of_the_host(trace)) {
    events.push_back(
        {step.when, 0, "user_annotation", fmt::format("ProfilerStep#{}", step.number), {}});
  }
  for (const PhaseOfTheHost& phase : phases_of_the_host(plan, trace)) {
    events.push_back({phase.when, 1, "user_annotation", std::string(name_of(phase.phase)), {}});
  }
  collect_spans(plan, trace, events);
  collect_calls(trace, correlations, events);
  std::stable_sort(events.begin(), events.end(), [](const HostEvent& one, const HostEvent& other) {
    if (one.when.begin != other.when.begin) return one.when.begin < other.when.begin;
    if (one.when.end != other.when.end) return one.when.end > other.when.end;
    return one.depth < other.depth;
  });
  return events;
}

// The work that every explicit wait waited for, by the index of the wait's call. `streams` has the
// stream numbers in the file, by their names in the plan.
std::map<std::size_t, WaitedFor> waited_for(const StepPlan& plan, const Trace& trace,
                                            std::span<const std::int64_t> correlations,
                                            const std::map<std::string, std::int64_t>& streams) {
  std::map<std::size_t, WaitedFor> found;
  std::map<int, WaitedFor> last_record;  // by event
  for (std::size_t index = 0; index < trace.calls.size(); ++index) {
    const HostCall& call = trace.calls[index];
    const int at =
        call.span < 0 ? -1 : trace.spans.at(static_cast<std::size_t>(call.span)).operation;
    if (is_explicit_wait(call)) found[index] = {};
    if (at < 0) continue;
    const Operation& operation = operation_at(plan, at);
    const auto known = streams.find(stream_at(plan, operation.stream).name);
    const std::int64_t stream = known == streams.end() ? -1 : known->second;
    const auto* record = std::get_if<RecordEvent>(&operation.action);
    const auto* wait = std::get_if<HostWaits>(&operation.action);
    if (record != nullptr) last_record[record->event] = {stream, correlations[index]};
    if (call.kind == CallKind::wait_for_stream) found[index] = {stream};
    if (call.kind == CallKind::wait_for_event && wait != nullptr) {
      found[index] = last_record[wait->event];
    }
  }
  return found;
}

// Thread numbers of the rows in the file.
constexpr std::int64_t host_thread = 1;
constexpr std::int64_t overhead_thread = 1000;
constexpr std::int64_t overlap_rows = 1'000'000;  // for the second row of a stream, the third, ...
constexpr std::int64_t phase_rows = 500'000;
constexpr std::int64_t wait_row = 900'000'000;

// "simulated NVIDIA H200": a simulation must not look like a measurement.
std::string shown_name(const DeviceIdentity& device) {
  return device.kind == DeviceKind::simulated ? "simulated " + device.name : device.name;
}

std::string_view name_of(UnsteadyKind kind) {
  switch (kind) {
    case UnsteadyKind::module_loading:
      return "module loading";
    case UnsteadyKind::jit_compilation:
      return "JIT compilation";
    case UnsteadyKind::command_buffer_full:
      return "Command Buffer Full";
    case UnsteadyKind::other:
      break;
  }
  return "overhead of tracing";
}

TraceTime first_moment(const Trace& trace) {
  TraceTime first = TraceTime::max();
  for (const HostSpan& span : trace.spans) first = std::min(first, span.begin);
  for (const HostCall& call : trace.calls) first = std::min(first, call.begin);
  for (const DeviceWork& work : trace.work) first = std::min(first, work.begin);
  for (const Unsteady& unsteady : trace.unsteady) first = std::min(first, unsteady.begin);
  return first == TraceTime::max() ? TraceTime(0) : first;
}

// Writes what one rank did.
class RankWriter {
 public:
  // Uses numbers of calls and arrows above `last_number`.
  RankWriter(TraceEvents& events, const TraceDocument& document, const Trace& trace, TraceTime base,
             std::int64_t last_number)
      : device_(document.device),
        plan_(document.plan),
        trace_(trace),
        base_(base),
        events_(events),
        gpu_(trace.rank),
        host_(document.plan.ranks.count + trace.rank),
        before_(last_number),
        last_number_(last_number) {
    for (const HostCall& call : trace_.calls) {
      last_number_ = std::max(last_number_, before_ + std::int64_t{call.correlation});
    }
    // Tools interpret stream 0 as "no stream".
    for (const DeviceWork& work : trace_.work) {
      if (work.stream == 0) first_stream_ = 1;
    }
    for (const auto& [stream, name] : names_of_streams(plan_, trace_)) {
      streams_[name] = stream + first_stream_;
    }
  }

  // Returns the last used number.
  std::int64_t write() {
    events_.count_from(base_);
    const std::string rank = plan_.ranks.count > 1 ? name_of_ranks(trace_) + ": " : "";
    events_.name_process(host_, rank + "stepgate", "CPU", 2 * gpu_);
    events_.name_process(gpu_, rank + shown_name(device_), fmt::format("GPU {}", gpu_),
                         2 * gpu_ + 1);
    write_host();
    write_unsteady();
    write_work();
    write_phases_of_streams();
    write_counters(events_, gpu_, base_, trace_);
    return last_number_;
  }

 private:
  const Operation& operation(int index) const {
    return plan_.operations.at(static_cast<std::size_t>(index));
  }

  // Returns a new number for a call without one in the trace, since each number must link exactly
  // one call to its work.
  std::int64_t correlation_of(const HostCall& call) {
    return call.correlation != 0 ? before_ + std::int64_t{call.correlation} : ++last_number_;
  }

  void write_host() {
    correlations_.reserve(trace_.calls.size());
    for (const HostCall& call : trace_.calls) correlations_.push_back(correlation_of(call));
    const std::vector<HostEvent> events = host_events(plan_, trace_, correlations_);
    std::vector<Stretch> stretches;
    for (const HostEvent& event : events) stretches.push_back(event.when);
    const std::vector<int> rows = rows_with_nesting(stretches);
    call_rows_.resize(trace_.calls.size());
    int most = -1;
    for (std::size_t index = 0; index < events.size(); ++index) {
      const HostEvent& event = events[index];
      const TraceEvents::Row row{host_, host_thread + rows[index]};
      for (; most < rows[index]; ++most) {
        events_.name_row({host_, host_thread + most + 1},
                         most < 0 ? "host" : fmt::format("host, overlap {}", most + 1), most + 1);
      }
      events_.stretch(event.category, event.name, row, event.when.begin, event.when.end,
                      event.arguments);
      if (event.call >= 0) call_rows_[static_cast<std::size_t>(event.call)] = row;
    }
    write_waits();
  }

  // Writes explicit waits again beside the streams, where tools look for what was waited for.
  void write_waits() {
    const auto waits = waited_for(plan_, trace_, correlations_, streams_);
    if (waits.empty()) return;
    std::vector<Stretch> stretches;
    for (const auto& [index, what] : waits) {
      stretches.push_back({trace_.calls[index].begin, trace_.calls[index].end});
    }
    const std::vector<int> rows = rows_without_overlap(stretches);
    events_.name_row({gpu_, wait_row}, "waits of the host", wait_row);
    auto row = rows.begin();
    for (const auto& [index, what] : waits) {
      const HostCall& call = trace_.calls[index];
      events_.stretch("cuda_sync", kind_of_wait(call), {gpu_, wait_row + *row++}, call.begin,
                      call.end,
                      arguments_of_wait(call, what.stream, what.recorded_by,
                                        {call.span + 1, correlations_[index], gpu_}));
    }
  }

  void write_unsteady() {
    if (trace_.unsteady.empty()) return;
    std::vector<Unsteady> all = trace_.unsteady;
    std::stable_sort(all.begin(), all.end(), [](const Unsteady& one, const Unsteady& other) {
      return one.begin < other.begin;
    });
    std::vector<Stretch> stretches;
    for (const Unsteady& unsteady : all) stretches.push_back({unsteady.begin, unsteady.end});
    const std::vector<int> rows = rows_without_overlap(stretches);
    events_.name_row({host_, overhead_thread}, "not steady", overhead_thread);
    for (std::size_t index = 0; index < all.size(); ++index) {
      events_.stretch("overhead", name_of(all[index].kind), {host_, overhead_thread + rows[index]},
                      all[index].begin, all[index].end, {});
    }
  }

  void write_work() {
    std::map<std::int64_t, std::size_t> calls;  // by correlation number
    for (std::size_t index = 0; index < trace_.calls.size(); ++index) {
      if (trace_.calls[index].correlation != 0) calls[trace_.calls[index].correlation] = index;
    }
    std::vector<bool> has_arrow(trace_.calls.size());
    for (const auto& [stream, name] : names_of_streams(plan_, trace_)) {
      std::vector<const DeviceWork*> work;
      std::vector<Stretch> stretches;
      for (const DeviceWork& piece : trace_.work) {
        if (piece.stream != stream) continue;
        work.push_back(&piece);
        stretches.push_back({piece.begin, piece.end});
      }
      const std::vector<int> rows = rows_without_overlap(stretches);
      const int most = *std::max_element(rows.begin(), rows.end());
      for (int row = 0; row <= most; ++row) name_row_of(stream, name, row);
      for (std::size_t index = 0; index < work.size(); ++index) {
        const auto call = calls.find(work[index]->correlation);
        write_piece(*work[index], rows[index],
                    call == calls.end() ? -1 : static_cast<int>(call->second), has_arrow);
      }
    }
  }

  void name_row_of(int stream, const std::string& name, int row) {
    const std::int64_t number = stream + first_stream_;
    events_.name_row({gpu_, number + row * overlap_rows},
                     fmt::format("stream {}{}{}{}", number, name.empty() ? "" : ": ", name,
                                 row == 0 ? "" : fmt::format(", overlap {}", row)),
                     number * 100 + row);
  }

  void write_piece(const DeviceWork& work, int row_of_stream, int call,
                   std::vector<bool>& has_arrow) {
    const std::int64_t stream = work.stream + first_stream_;
    const TraceEvents::Row row{gpu_, stream + row_of_stream * overlap_rows};
    const bool has_number = work.correlation != 0;
    TraceLinks links{0, has_number ? before_ + std::int64_t{work.correlation} : 0, gpu_};
    if (call >= 0) links.operation = trace_.calls[static_cast<std::size_t>(call)].span + 1;
    // Profilers show a collective as a kernel.
    const std::string_view category = work.kind == WorkKind::copy   ? "gpu_memcpy"
                                      : work.kind == WorkKind::fill ? "gpu_memset"
                                                                    : "kernel";
    events_.stretch(
        category, name_of_work(work), row, work.begin, work.end,
        arguments_of_work(device_, work, stream,
                          work.operation < 0 ? "" : operation(work.operation).name, links));
    write_wait_for_rank(work, row);
    if (call < 0) return;
    // An arrow has only one end, so each piece of a graph needs its own arrow.
    const auto index = static_cast<std::size_t>(call);
    const std::int64_t number = has_arrow[index] ? ++last_number_ : correlations_[index];
    has_arrow[index] = true;
    events_.arrow(number, call_rows_[index], trace_.calls[index].begin, row, work.begin);
  }

  // Writes the wait within a collective until its last rank arrives.
  void write_wait_for_rank(const DeviceWork& work, TraceEvents::Row row) {
    const auto wait = wait_for_rank(work, meetings_);
    if (!wait) return;
    events_.stretch("gpu_user_annotation", fmt::format("waits for rank {}", wait->rank), row,
                    work.begin, wait->until, fmt::format("\"step\":{}", work.step));
  }

  // Writes the phases of the device's work on a row beside each stream.
  void write_phases_of_streams() {
    const std::vector<PhaseOfAStream> phases = phases_of_streams(plan_, trace_);
    std::set<int> streams;
    for (const PhaseOfAStream& phase : phases) streams.insert(phase.stream);
    for (const int stream : streams) {
      const std::int64_t number = stream + first_stream_;
      events_.name_row({gpu_, number + phase_rows}, fmt::format("stream {}: phases", number),
                       number * 100 + 99);
    }
    for (const PhaseOfAStream& phase : phases) {
      events_.stretch("gpu_user_annotation", name_of(phase.phase),
                      {gpu_, phase.stream + first_stream_ + phase_rows}, phase.when.begin,
                      phase.when.end, fmt::format("\"step\":{}", phase.step));
    }
  }

  const DeviceIdentity& device_;
  const StepPlan& plan_;
  const Trace& trace_;
  TraceTime base_;
  TraceEvents& events_;
  std::int64_t gpu_;          // the process number, as tools expect
  std::int64_t host_;         // a process after all GPUs
  std::int64_t before_;       // numbers used by earlier ranks
  std::int64_t last_number_;  // used for a call or an arrow
  MeetingsOfRanks meetings_ = meetings_of(trace_);
  int first_stream_ = 0;
  std::map<std::string, std::int64_t> streams_;  // numbers in the file, by name in the plan
  std::vector<std::int64_t> correlations_;       // of the calls
  std::vector<TraceEvents::Row> call_rows_;
};

void write_head(std::ostream& out, const TraceDocument& document, TraceTime base) {
  const DeviceIdentity& device = document.device;
  const StepPlan& plan = document.plan;
  const auto major = static_cast<int>(device.compute_capability + 0.01);
  const double minor = (device.compute_capability - major) * 10;
  // HolisticTraceAnalysis looks for the blank after "rank":.
  fmt::print(out,
             "{{\n\"schemaVersion\":1,\n"
             "\"deviceProperties\":[{{\"id\":0,\"name\":{},\"totalGlobalMem\":{},"
             "\"computeMajor\":{},\"computeMinor\":{:.0f},\"numSms\":{}}}],\n"
             "\"distributedInfo\":{{\"backend\":\"nccl\",\"rank\": {},\"world_size\":{}}},\n"
             "\"stepgate\":{{\"scenario\":{},\"variant\":{},\"device\":{}}},\n"
             "\"displayTimeUnit\":\"ms\",\n\"baseTimeNanoseconds\":{},\n\"traceEvents\":[",
             json_text(shown_name(device)), device.memory_bytes, major, minor,
             device.multiprocessors, document.ranks.front().rank, plan.ranks.count,
             json_text(plan.scenario), json_text(plan.variant), json_text(in_words(device)),
             base.count());
}

}  // namespace

std::filesystem::path trace_file(const std::filesystem::path& asked_for, const StepPlan& plan) {
  std::filesystem::path stem = asked_for;
  if (stem.extension() == ".json") stem.replace_extension();
  return stem.string() + fmt::format(".{}.{}.json", plan.scenario, plan.variant);
}

void write_trace(std::ostream& out, const TraceDocument& document) {
  require(!document.ranks.empty(), "somebody was traced");
  TraceTime base = TraceTime::max();
  for (const Trace& trace : document.ranks) base = std::min(base, first_moment(trace));
  const bool one_clock = std::ranges::all_of(document.ranks, shares_its_clock);
  write_head(out, document, base);
  TraceEvents events(out);
  std::int64_t last_number = 0;
  for (const Trace& trace : document.ranks) {
    const TraceTime begin = one_clock ? base : first_moment(trace);
    last_number = RankWriter(events, document, trace, begin, last_number).write();
  }
  events.finish();
  fmt::print(out, "\n],\n\"traceName\":{}}}\n",
             json_text(fmt::format("{}.{}", document.plan.scenario, document.plan.variant)));
}

}  // namespace stepgate
