// SPDX-License-Identifier: MIT
#include "report/trace/trace_host_events.h"

#include <fmt/format.h>

#include <algorithm>

#include "plan/compose/step_names.h"
#include "report/trace/trace_arguments.h"

namespace stepgate {
namespace {

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
    // Operations within a graph cost the host nothing when it is launched.
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

}  // namespace

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

}  // namespace stepgate
