// SPDX-License-Identifier: MIT
#include <algorithm>
#include <chrono>
#include <map>
#include <optional>
#include <unordered_map>
#include <utility>

#include "device/cuda/cupti/activity_records.h"
#include "device/cuda/cupti/call_kinds.h"
#include "device/cuda/nccl/nccl_words.h"

namespace stepgate {
namespace {

// Whether a call only queries: libraries query devices, attributes and errors often, and a trace
// omits such calls.
bool only_asks(std::string_view call) {
  return call.starts_with("cudaGet") || call.starts_with("cudaPeek") ||
         call.starts_with("cudaFuncGet") || call.starts_with("cudaDeviceGet");
}

constexpr auto by_begin = [](const auto& a, const auto& b) { return a.begin < b.begin; };

// Returns the index of the span that contains the time; -1 if there is none. Spans are in order and
// disjoint.
int span_at(const std::vector<HostSpan>& spans, TraceTime time) {
  const auto after =
      std::upper_bound(spans.begin(), spans.end(), time,
                       [](TraceTime value, const HostSpan& span) { return value < span.begin; });
  if (after == spans.begin()) return -1;
  const auto found = std::prev(after);
  return time <= found->end ? static_cast<int>(found - spans.begin()) : -1;
}

// Whether this is a kernel of NCCL, of any version and algorithm.
bool is_of_nccl(std::string_view kernel) {
  return kernel.starts_with("ncclDevKernel") || kernel.starts_with("ncclSymkDevKernel") ||
         kernel.starts_with("ncclKernel");
}

// NCCL's kernels are named after the collective: "ncclDevKernel_AllGather_RING_LL".
std::optional<CollectiveKind> kind_named_in(const DeviceWork& work) {
  if (work.kind != WorkKind::kernel || !is_of_nccl(work.name)) return std::nullopt;
  for (const CollectiveKind kind : {CollectiveKind::all_reduce, CollectiveKind::reduce_scatter,
                                    CollectiveKind::all_gather, CollectiveKind::broadcast}) {
    if (work.name.find(nccl_function_of(kind)) != std::string::npos) return kind;
  }
  return std::nullopt;
}

class Assembly {
 public:
  Assembly(const StepPlan& plan, ActivityRecords records, Trace& trace)
      : plan_(plan), records_(std::move(records)), trace_(trace) {}

  // First removes the records of steps before the traced ones, which are the most.
  void assemble() {
    std::erase_if(records_.calls, [&](const CallRecord& call) { return !inside(call.begin); });
    std::sort(records_.calls.begin(), records_.calls.end(), [](const auto& a, const auto& b) {
      return a.begin != b.begin ? a.begin < b.begin : a.of_driver < b.of_driver;
    });
    take_calls();
    std::erase_if(records_.work,
                  [&](const DeviceWork& work) { return !call_of_.contains(work.correlation); });
    std::sort(records_.work.begin(), records_.work.end(), by_begin);
    take_work();
    name_collectives();
    take_memory_changes();
    for (const Unsteady& unsteady : records_.unsteady) {
      if (inside(unsteady.begin)) trace_.unsteady.push_back(unsteady);
    }
    std::sort(trace_.unsteady.begin(), trace_.unsteady.end(), by_begin);
    take_page_events();
  }

 private:
  bool inside(TraceTime time) const {
    return !trace_.spans.empty() && time >= trace_.spans.front().begin &&
           time <= trace_.spans.back().end;
  }

  void take_calls() {
    TraceTime runtime_end{-1};
    for (CallRecord& record : records_.calls) {
      const int span = span_at(trace_.spans, record.begin);
      if (span < 0 || only_asks(record.name)) continue;
      const bool nested = record.of_driver && record.begin <= runtime_end;
      if (!record.of_driver) runtime_end = record.end;
      if (nested) continue;
      const CallMeaning meaning = meaning_within(span, record.name);
      if (meaning.kind == CallKind::poll && continues_polling(span)) {
        HostCall& polls = trace_.calls.back();
        polls.end = record.end;
        ++polls.count;
        continue;
      }
      if (record.correlation != 0) {
        call_of_[record.correlation] = static_cast<int>(trace_.calls.size());
      }
      trace_.calls.push_back({.name = std::move(record.name),
                              .kind = meaning.kind,
                              .can_block = meaning.always_can_block,
                              .span = span,
                              .correlation = record.correlation,
                              .begin = record.begin,
                              .end = record.end});
    }
  }

  // Returns the action of the plan's operation; nullptr for spans of the runner itself.
  const Action* action_of(int operation) const {
    return operation < 0 ? nullptr : &operation_at(plan_, operation).action;
  }

  bool is_of_collective(int operation) const {
    const Action* action = action_of(operation);
    return action != nullptr && std::holds_alternative<Collective>(*action);
  }

  // Returns the meaning of a call within a span. Event queries of an allocator are not polls of the
  // step, and their number depends on timing. NCCL's own launches and stream waits inside a
  // collective do not count either: the plan counts the collective as one call.
  CallMeaning meaning_within(int span, std::string_view name) const {
    CallMeaning meaning = meaning_of_call(name);
    const int index = trace_.spans[static_cast<std::size_t>(span)].operation;
    if (is_of_collective(index)) return {};
    if (meaning.kind != CallKind::poll || index < 0) return meaning;
    const Action& action = *action_of(index);
    if (std::holds_alternative<Allocate>(action) || std::holds_alternative<Release>(action)) {
      meaning.kind = CallKind::other;
    }
    return meaning;
  }

  bool continues_polling(int span) const {
    return !trace_.calls.empty() && trace_.calls.back().kind == CallKind::poll &&
           trace_.calls.back().span == span;
  }

  void take_work() {
    std::map<std::uint32_t, std::vector<int>> of_graph;  // by correlation
    for (DeviceWork& work : records_.work) {
      const int caller = call_of_.at(work.correlation);
      HostCall& call = trace_.calls[static_cast<std::size_t>(caller)];
      const HostSpan& span = trace_.spans[static_cast<std::size_t>(call.span)];
      work.operation = span.operation;
      work.step = span.step;
      const bool pageable = work.from == CopyEnd::pageable || work.to == CopyEnd::pageable;
      if (work.kind == WorkKind::copy && pageable && !is_of_collective(span.operation))
        call.can_block = true;
      work.from_graph = call.kind == CallKind::graph_launch;
      if (work.from_graph) {
        of_graph[work.correlation].push_back(static_cast<int>(trace_.work.size()));
      }
      trace_.work.push_back(std::move(work));
    }
    for (const auto& [correlation, works] : of_graph) give_to_captured(works);
  }

  // Assigns the work of a graph's launch, in order of time, to captured operations. Collectives of
  // a kind are on one stream and are matched separately.
  void give_to_captured(const std::vector<int>& works) {
    std::map<std::optional<CollectiveKind>, std::vector<int>> operations;
    for (const int operation : records_.graph_work) {
      const auto* collective = std::get_if<Collective>(action_of(operation));
      operations[collective ? std::optional(collective->kind) : std::nullopt].push_back(operation);
    }
    std::map<std::optional<CollectiveKind>, std::vector<DeviceWork*>> found;
    for (const int index : works) {
      DeviceWork& work = trace_.work[static_cast<std::size_t>(index)];
      found[kind_named_in(work)].push_back(&work);
    }
    for (const auto& [kind, alike] : found) {
      const std::vector<int>& captured = operations[kind];
      if (alike.size() != captured.size()) continue;  // the work stays assigned to the launch
      for (std::size_t index = 0; index < alike.size(); ++index)
        alike[index]->operation = captured[index];
    }
  }

  void name_collectives() {
    for (DeviceWork& work : trace_.work) {
      if (work.kind != WorkKind::kernel || !is_of_nccl(work.name)) continue;
      if (!is_of_collective(work.operation)) continue;
      const auto& collective = std::get<Collective>(*action_of(work.operation));
      work.kind = WorkKind::collective;
      work.collective = collective.kind;
      work.bytes = payload_bytes(collective);
    }
  }

  void take_memory_changes() {
    std::sort(records_.memory_changes.begin(), records_.memory_changes.end(),
              [](const MemoryChange& a, const MemoryChange& b) { return a.at < b.at; });
    for (MemoryChange& change : records_.memory_changes) {
      const int span = span_at(trace_.spans, change.at);
      if (span < 0) continue;
      change.operation = trace_.spans[static_cast<std::size_t>(span)].operation;
      trace_.memory_changes.push_back(change);
    }
  }

  // Takes the page events, which belong to no call. In steady steps, events of earlier steps inside
  // the spans balance events of traced steps after the spans.
  void take_page_events() {
    if (!records_.page_events) return;
    trace_.page_events.emplace();
    for (const PageEvent& event : *records_.page_events) {
      if (inside(event.begin)) trace_.page_events->push_back(event);
    }
    std::sort(trace_.page_events->begin(), trace_.page_events->end(), by_begin);
  }

  const StepPlan& plan_;
  ActivityRecords records_;
  Trace& trace_;
  std::unordered_map<std::uint32_t, int> call_of_;  // index of the call with that correlation
};

}  // namespace

Trace assemble_trace(const StepPlan& plan, ActivityRecords records, std::vector<HostSpan> spans,
                     std::int64_t first_step, std::int64_t steps) {
  Trace trace;
  const auto begin = std::chrono::steady_clock::now();
  const std::chrono::nanoseconds collected_in = records.collected_in;
  trace.first_step = first_step;
  trace.steps = steps;
  trace.spans = std::move(spans);
  Assembly(plan, std::move(records), trace).assemble();
  trace.collected_in = collected_in + (std::chrono::steady_clock::now() - begin);
  return trace;
}

}  // namespace stepgate
