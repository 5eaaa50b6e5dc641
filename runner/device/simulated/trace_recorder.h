// SPDX-License-Identifier: MIT
// Writes down what a simulated step does, as a tracing library would see it on a GPU. It receives
// all times and computes none, so recording changes nothing.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "device/trace.h"

namespace stepgate {

// A call as it is when it begins.
struct CallMade {
  CallKind kind = CallKind::other;
  std::string_view name;
  bool can_block = false;
};

// Work of the device, beside what the recorder knows of it already.
struct WorkSeen {
  WorkKind kind = WorkKind::kernel;
  std::string_view name = {};
  std::int64_t bytes = 0;
  CopyEnd from = CopyEnd::unknown;
  CopyEnd to = CopyEnd::unknown;
  std::optional<CollectiveKind> collective = {};
};

// Does nothing until it is started and after the trace was taken.
class TraceRecorder {
 public:
  // Records from that step on. Operations beyond the first `operations` of a plan, which a test has
  // planted, appear as the last of them.
  void start(std::int64_t first_step, std::size_t operations);
  Trace take(std::int64_t steps);

  // The host's activity at a step, from here to `end_span`. Operation -1: the runner's own
  // business.
  void begin_span(int operation, std::int64_t step, std::int64_t acts_for, std::int64_t now);
  void end_span(std::int64_t now);

  // One call after the other within the span.
  void begin_call(const CallMade&, std::int64_t now);
  void end_call(std::int64_t now);

  // Work that the call begun last makes the device do; captured work belongs to the graph launch
  // that was begun last.
  void work(const WorkSeen&, const Operation&, std::int64_t begin, std::int64_t end);
  // Likewise; bytes below 0 are given back.
  void memory(std::int64_t bytes, MemoryKind, std::int64_t now);
  // An event of managed memory, within the span.
  void pages(PageEventKind, std::int64_t amount, std::int64_t begin, std::int64_t end);

 private:
  bool on_ = false;
  bool in_span_ = false;
  std::int64_t first_step_ = 0;
  int last_operation_ = 0;
  std::size_t graph_launch_ = 0;  // index of its call
  Trace trace_;
};

// The calls that a GPU would see for these.
CallMade call_of(const HostWaits&);
CallMade call_of(const StepPlan&, const CopyBytes&);
CallMade call_of_allocation(AllocatedBy);
CallMade call_of_release(AllocatedBy);

// Where an end of a copy is.
CopyEnd copy_end_of(MemoryKind);

}  // namespace stepgate
