// SPDX-License-Identifier: MIT
// The memory of one step from one allocator: every buffer of its plan, by slot. Counting ahead and
// carrying out on a device go through the same code, over simulated memory and over a GPU's.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "plan/allocators/memory_allocator.h"
#include "plan/step_plan.h"

namespace stepgate {

class CachingAllocator;

class StepAllocator {
 public:
  // The plan says which allocator. Both must outlive it.
  StepAllocator(const StepPlan&, DeviceMemory&);
  ~StepAllocator();

  // Blocks for everything in device memory that stays from step to step. Nothing when all is there.
  std::optional<Refusal> take_kept();

  // For buffers that come and go. A slot that is still held is forgotten, and its block is held for
  // good: that is what a leak is.
  std::optional<Refusal> allocate(int buffer, std::int64_t step, int stream);
  // Not held: nothing happens.
  void release(int buffer, std::int64_t step);
  void empty_cache() { allocator_->empty_cache(); }
  // Whichever of these three the operation asks for; nothing happens for any other.
  std::optional<Refusal> serve(const Operation&, std::int64_t step);

  // Between the two the operations of a graph are served once, from memory that is its own: their
  // addresses stay with it, and its launches ask for nothing. Graphs of one step run one after the
  // other and share that memory. Not for first_fit.
  void begin_capture();
  void end_capture();

  bool holds(int buffer, std::int64_t step) const { return slot(buffer, step).has_value(); }
  // 0 where nothing is held.
  Address address(int buffer, std::int64_t step) const;

  const MemoryStatistics& statistics() const { return allocator_->statistics(); }
  const MemoryAllocator& allocator() const { return *allocator_; }

 private:
  struct Held {
    HeldBlock block;
    int stream;
  };
  std::optional<Held>& slot(int buffer, std::int64_t step);
  const std::optional<Held>& slot(int buffer, std::int64_t step) const;
  std::optional<Refusal> take(int buffer, std::optional<Held>&, int stream);

  const StepPlan& plan_;
  std::unique_ptr<MemoryAllocator> allocator_;
  std::vector<std::vector<std::optional<Held>>> slots_;  // by buffer, then slot
  std::vector<std::vector<int>> streams_;                // that touch the buffer
};

// Operations that the step's allocator serves during graph capture, in program order.
std::vector<const Operation*> served_by_capture(const StepPlan&);

// Whether another stream may still use a buffer when the step releases it. Then the progress of the
// streams decides when its memory can be reused.
bool frees_depend_on_streams(const StepPlan&);

// "cannot allocate 64 MiB for 'logits': 3 GiB are live of 3.2 GiB reserved, ...".
std::string in_words(const Refusal&, const std::string& buffer);
// Names the knob that would help.
std::string way_out(const Refusal&);

}  // namespace stepgate
