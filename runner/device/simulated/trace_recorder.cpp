// SPDX-License-Identifier: MIT
#include "device/simulated/trace_recorder.h"

#include <algorithm>
#include <utility>

#include "base/require.h"
#include "plan/analyse/access.h"

namespace stepgate {

void TraceRecorder::start(std::int64_t first_step, std::size_t operations) {
  on_ = true;
  first_step_ = first_step;
  last_operation_ = static_cast<int>(operations) - 1;
  trace_ = {};
  trace_.page_events.emplace();
  trace_.first_step = first_step;
}

Trace TraceRecorder::take(std::int64_t steps) {
  on_ = false;
  in_span_ = false;
  trace_.steps = steps;
  std::stable_sort(
      trace_.work.begin(), trace_.work.end(),
      [](const DeviceWork& one, const DeviceWork& other) { return one.begin < other.begin; });
  return std::move(trace_);
}

void TraceRecorder::begin_span(int operation, std::int64_t step, std::int64_t acts_for,
                               std::int64_t now) {
  in_span_ = on_ && step >= first_step_;
  if (!in_span_) return;
  trace_.spans.push_back({.operation = std::min(operation, last_operation_),
                          .step = step,
                          .acts_for = acts_for,
                          .begin = TraceTime(now),
                          .end = TraceTime(now)});
}

void TraceRecorder::end_span(std::int64_t now) {
  if (in_span_) trace_.spans.back().end = TraceTime(now);
  in_span_ = false;
}

void TraceRecorder::begin_call(const CallMade& call, std::int64_t now) {
  if (!in_span_) return;
  if (call.kind == CallKind::graph_launch) graph_launch_ = trace_.calls.size();
  trace_.calls.push_back({.name = std::string(call.name),
                          .kind = call.kind,
                          .can_block = call.can_block,
                          .span = static_cast<int>(trace_.spans.size()) - 1,
                          .begin = TraceTime(now),
                          .end = TraceTime(now)});
}

void TraceRecorder::end_call(std::int64_t now) {
  if (in_span_) trace_.calls.back().end = TraceTime(now);
}

void TraceRecorder::work(const WorkSeen& seen, const Operation& operation, std::int64_t begin,
                         std::int64_t end) {
  if (!in_span_) return;
  const std::size_t caused_by = operation.captured ? graph_launch_ : trace_.calls.size() - 1;
  const auto correlation = static_cast<std::uint32_t>(caused_by) + 1;
  trace_.calls[caused_by].correlation = correlation;
  trace_.work.push_back({.kind = seen.kind,
                         .name = std::string(seen.name),
                         .stream = operation.stream,
                         .operation = trace_.spans.back().operation,
                         .step = trace_.spans.back().step,
                         .correlation = correlation,
                         .from_graph = operation.captured,
                         .begin = TraceTime(begin),
                         .end = TraceTime(end),
                         .bytes = seen.bytes,
                         .from = seen.from,
                         .to = seen.to,
                         .collective = seen.collective});
}

void TraceRecorder::memory(std::int64_t bytes, MemoryKind memory, std::int64_t now) {
  if (!in_span_) return;
  trace_.memory_changes.push_back({.at = TraceTime(now),
                                   .bytes = bytes,
                                   .memory = memory,
                                   .operation = trace_.spans.back().operation});
}

void TraceRecorder::pages(PageEventKind kind, std::int64_t amount, std::int64_t begin,
                          std::int64_t end) {
  if (!in_span_) return;
  trace_.page_events->push_back(
      {.kind = kind, .amount = amount, .begin = TraceTime(begin), .end = TraceTime(end)});
}

CallMade call_of(const HostWaits& waits) {
  switch (waits.what) {
    case WaitFor::device:
      return {CallKind::wait_for_device, "cudaDeviceSynchronize", true};
    case WaitFor::stream:
      return {CallKind::wait_for_stream, "cudaStreamSynchronize", true};
    case WaitFor::event:
      return {CallKind::wait_for_event, "cudaEventSynchronize", true};
    case WaitFor::poll:
      return {CallKind::poll, "cudaEventQuery", false};
  }
  require(false, "every wait is a call");
  return {};
}

CallMade call_of(const StepPlan& plan, const CopyBytes& copy) {
  return {CallKind::copy, copy.host_waits ? "cudaMemcpy" : "cudaMemcpyAsync",
          copy.host_waits || is_pageable(plan, copy)};
}

CallMade call_of_allocation(AllocatedBy allocator) {
  return {CallKind::allocate, allocator == AllocatedBy::cuda ? "cudaMalloc" : "cudaMallocAsync",
          false};
}

// cudaFree waits for the device; cudaFreeAsync does not.
CallMade call_of_release(AllocatedBy allocator) {
  const bool waits = allocator == AllocatedBy::cuda;
  return {CallKind::release, waits ? "cudaFree" : "cudaFreeAsync", waits};
}

CopyEnd copy_end_of(MemoryKind memory) {
  switch (memory) {
    case MemoryKind::device:
      return CopyEnd::device;
    case MemoryKind::pageable:
      return CopyEnd::pageable;
    case MemoryKind::pinned:
    case MemoryKind::registered:
      return CopyEnd::pinned;
    case MemoryKind::managed:
      return CopyEnd::managed;
  }
  require(false, "every memory is an end");
  return CopyEnd::unknown;
}

}  // namespace stepgate
