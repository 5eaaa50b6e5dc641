// SPDX-License-Identifier: MIT
#include "report/trace/write_trace.h"

#include <fmt/format.h>
#include <fmt/ostream.h>

#include <algorithm>
#include <map>
#include <ostream>
#include <set>
#include <vector>

#include "base/require.h"
#include "measure/trace/meetings.h"
#include "plan/compose/step_names.h"
#include "report/trace/trace_arguments.h"
#include "report/trace/trace_counters.h"
#include "report/trace/trace_events.h"
#include "report/trace/trace_host_events.h"
#include "report/trace/trace_rows.h"

namespace stepgate {
namespace {

// Rows of the file.
constexpr std::int64_t host_thread = 1;
constexpr std::int64_t overhead_thread = 1000;
constexpr std::int64_t overlap_rows = 1'000'000;  // a stream's second row, third, ...
constexpr std::int64_t phase_rows = 500'000;
constexpr std::int64_t wait_row = 900'000'000;

// "simulated NVIDIA H200": a simulation never passes for something that was measured.
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
  // Numbers of calls and arrows are above `last_number`.
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
    // Tools take stream 0 for "no stream".
    for (const DeviceWork& work : trace_.work) {
      if (work.stream == 0) first_stream_ = 1;
    }
    for (const auto& [stream, name] : names_of_streams(plan_, trace_)) {
      streams_[name] = stream + first_stream_;
    }
  }

  // Returns the last number that it gave.
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

  // A call of its own number where the trace has none, for a number ties exactly one call to its
  // work.
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

  // Explicit waits once more beside the streams, where tools look for what the device was waited
  // for.
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
    std::map<std::int64_t, std::size_t> calls;  // by their number
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
    // A profiler sees a collective as the kernel that it is.
    const std::string_view category = work.kind == WorkKind::copy   ? "gpu_memcpy"
                                      : work.kind == WorkKind::fill ? "gpu_memset"
                                                                    : "kernel";
    events_.stretch(
        category, name_of_work(work), row, work.begin, work.end,
        arguments_of_work(device_, work, stream,
                          work.operation < 0 ? "" : operation(work.operation).name, links));
    write_wait_for_rank(work, row);
    if (call < 0) return;
    // An arrow ends once, so each piece of a graph has one of its own.
    const auto index = static_cast<std::size_t>(call);
    const std::int64_t number = has_arrow[index] ? ++last_number_ : correlations_[index];
    has_arrow[index] = true;
    events_.arrow(number, call_rows_[index], trace_.calls[index].begin, row, work.begin);
  }

  // Within a collective, until its last rank has come.
  void write_wait_for_rank(const DeviceWork& work, TraceEvents::Row row) {
    const auto wait = wait_for_rank(work, meetings_);
    if (!wait) return;
    events_.stretch("gpu_user_annotation", fmt::format("waits for rank {}", wait->rank), row,
                    work.begin, wait->until, fmt::format("\"step\":{}", work.step));
  }

  // Phases as the device goes through them, on a row beside each stream.
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
  std::int64_t gpu_;          // the process of its number, as tools expect it
  std::int64_t host_;         // a process behind all GPUs
  std::int64_t before_;       // numbers that other ranks have
  std::int64_t last_number_;  // of a call or an arrow
  MeetingsOfRanks meetings_ = meetings_of(trace_);
  int first_stream_ = 0;
  std::map<std::string, std::int64_t> streams_;  // by what the plan calls them, as written
  std::vector<std::int64_t> correlations_;       // of the calls
  std::vector<TraceEvents::Row> call_rows_;
};

void write_head(std::ostream& out, const TraceDocument& document, TraceTime base) {
  const DeviceIdentity& device = document.device;
  const StepPlan& plan = document.plan;
  const auto major = static_cast<int>(device.compute_capability + 0.01);
  const double minor = (device.compute_capability - major) * 10;
  // The blank after "rank": is what HolisticTraceAnalysis looks for.
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
