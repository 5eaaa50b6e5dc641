// SPDX-License-Identifier: MIT
// Records what a simulated step does, as a tracing library would see it on a GPU. It receives all
// times and computes none, so recording changes nothing.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "device/trace.h"

namespace stepgate {

// The facts of a call that are known at its begin.
struct CallMade {
  CallKind kind = CallKind::other;
  std::string_view name;
  bool can_block = false;
};

// The facts of device work that the recorder does not derive from the operation.
struct WorkSeen {
  WorkKind kind = WorkKind::kernel;
  std::string_view name = {};
  std::int64_t bytes = 0;
  CopyEnd from = CopyEnd::unknown;
  CopyEnd to = CopyEnd::unknown;
  std::optional<CollectiveKind> collective = {};
};

// Records only between `start` and `take`; otherwise its functions do nothing.
class TraceRecorder {
 public:
  // Records from `first_step` on. A test may plant operations after the first `operations` of a
  // plan; they appear as the last of these.
  void start(std::int64_t first_step, std::size_t operations);
  Trace take(std::int64_t steps);

  // Begins the host's activity for an operation at a step; `end_span` ends it. Operation -1 is the
  // runner's own activity.
  void begin_span(int operation, std::int64_t step, std::int64_t acts_for, std::int64_t now);
  void end_span(std::int64_t now);

  // Calls within a span follow one another.
  void begin_call(const CallMade&, std::int64_t now);
  void end_call(std::int64_t now);

  // Device work that the latest call causes; captured work belongs to the latest graph launch.
  void work(const WorkSeen&, const Operation&, std::int64_t begin, std::int64_t end);
  // A change of memory that the latest call causes; negative bytes are given back.
  void memory(std::int64_t bytes, MemoryKind, std::int64_t now);
  // Records an event of managed memory within the span.
  void pages(PageEventKind, std::int64_t amount, std::int64_t begin, std::int64_t end);

 private:
  bool on_ = false;
  bool in_span_ = false;
  std::int64_t first_step_ = 0;
  int last_operation_ = 0;
  std::size_t graph_launch_ = 0;  // index of the latest cudaGraphLaunch
  Trace trace_;
};

// The CUDA calls that an action makes on a GPU.
CallMade call_of(const HostWaits&);
CallMade call_of(const StepPlan&, const CopyBytes&);
CallMade call_of_allocation(AllocatedBy);
CallMade call_of_release(AllocatedBy);

// The kind of memory at one end of a copy.
CopyEnd copy_end_of(MemoryKind);

}  // namespace stepgate
