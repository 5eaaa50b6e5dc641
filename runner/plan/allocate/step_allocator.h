// SPDX-License-Identifier: MIT
// The memory of one step from one allocator: every buffer of its plan, by slot. Simulation and
// execution use the same code, with simulated memory and with a GPU's.
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
  // The plan names the kind of allocator. Plan and memory must outlive this object.
  StepAllocator(const StepPlan&, DeviceMemory&);
  ~StepAllocator();

  // Allocates all device memory that is kept from step to step. Returns nullopt on success.
  std::optional<Refusal> take_kept();

  // Allocates a temporary buffer. If its slot is still held, that block is forgotten and held for
  // good, which simulates a leak. Returns nullopt on success.
  std::optional<Refusal> allocate(int buffer, std::int64_t step, int stream);
  // Does nothing if the buffer is not held.
  void release(int buffer, std::int64_t step);
  void empty_cache() { allocator_->empty_cache(); }
  // Carries out an Allocate, Release or EmptyCache; does nothing for other operations.
  std::optional<Refusal> serve(const Operation&, std::int64_t step);

  // Between these two calls the operations of a graph are served once, from a private pool. The
  // addresses stay with the graph, whose launches request nothing. Graphs of one step run one after
  // the other and share that pool. Not available for first_fit.
  void begin_capture();
  void end_capture();

  bool holds(int buffer, std::int64_t step) const { return slot(buffer, step).has_value(); }
  // The address of the buffer; 0 if it is not held.
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
  std::vector<std::vector<int>> streams_;                // the streams that use each buffer
};

// Operations that the step's allocator serves during graph capture, in program order.
std::vector<const Operation*> served_by_capture(const StepPlan&);

// Whether another stream may still use a buffer when the step releases it. Then the progress of the
// streams decides when its memory can be reused.
bool frees_depend_on_streams(const StepPlan&);

// Writes "cannot allocate 64 MiB for 'logits': 3 GiB are live of 3.2 GiB reserved, ...".
std::string in_words(const Refusal&, const std::string& buffer);
// A hint that names the knob to change.
std::string way_out(const Refusal&);

}  // namespace stepgate
