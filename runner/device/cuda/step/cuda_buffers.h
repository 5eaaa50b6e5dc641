// SPDX-License-Identifier: MIT
// The memory of one loaded step: every buffer of its plan, with its contents, and the address of
// each slot.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "device/contents.h"
#include "device/cuda/cuda_device_memory.h"
#include "device/cuda/handles.h"
#include "device/cuda/step/persistent_memory.h"
#include "device/trace.h"
#include "plan/allocate/step_allocator.h"
#include "plan/step_plan.h"

namespace stepgate {

// Managed memory of one step, with its limit and the advice to the driver.
class ManagedBuffers {
 public:
  // Throws DeviceError where the plan needs more managed memory than the limit, or where the host
  // may not access it while the device works.
  explicit ManagedBuffers(const StepPlan&);

  // Allocates memory that lives as long as this object. Throws DeviceError.
  void* take(const Buffer&);

  std::int64_t bytes() const { return bytes_; }

 private:
  std::vector<ManagedMemory> owned_;
  std::int64_t bytes_ = 0;
};

// The driver's stream-ordered memory pool of one step, so that memory kept for one variant does not
// serve another. Describes its refusals.
class StepPool {
 public:
  // Creates a pool with the plan's threshold and cap. Throws DeviceError.
  explicit StepPool(const StepPlan&);

  // Allocates in stream order. Throws DeviceError; if the pool refuses, with the pool's state.
  void* take(const Buffer&, std::int64_t step, cudaStream_t) const;

  // The most memory that the pool has taken from the device.
  std::int64_t most_reserved_bytes() const { return bytes(cudaMemPoolAttrReservedMemHigh); }

 private:
  std::int64_t bytes(cudaMemPoolAttr) const;
  [[noreturn]] void refuse(const Buffer&, std::int64_t step) const;

  const StepPlan& plan_;
  MemoryPool pool_;
};

class CudaBuffers {
 public:
  // Allocates and fills everything that the plan keeps; device memory is filled on the compute
  // stream. Throws DeviceError; for a lack of memory with the requested and the free bytes. Only
  // this step may use `kept` until this object is destroyed. The streams must outlive it.
  CudaBuffers(const StepPlan&, ContentsCache&, PersistentMemory& kept, const StepStreams&);
  ~CudaBuffers();

  // Returns the address of the slot that the step uses; nullptr while a temporary buffer is not
  // allocated.
  void* address(int buffer, std::int64_t step) const {
    const std::vector<void*>& slots = slots_[static_cast<std::size_t>(buffer)];
    return slots[static_cast<std::size_t>(step) % slots.size()];
  }

  // Restores the initial content of a persistent buffer, in stream order. Does nothing for others.
  void fill_again(int buffer, ContentsCache&, cudaStream_t) const;

  // Allocates a temporary buffer, and below releases one.
  void allocate(int buffer, std::int64_t step, int stream, cudaStream_t);
  void release(int buffer, std::int64_t step, cudaStream_t stream);
  // Empties the cache of the step's own allocator, if it has one.
  void empty_cache();
  // Callers use these around the capture of a graph, whose allocations get private memory.
  void begin_capture();
  void end_capture();

  // Excludes bytes that the driver has allocated since loading from the memory of the step.
  void leave_out(std::int64_t bytes) { free_at_first_ -= bytes; }

  // Memory used since loading. Queries the driver too, so all work must be done.
  MemoryUse use() const;

  // Copies a slot to host memory and waits for the copy.
  std::vector<std::byte> read(int buffer, std::int64_t step) const;

 private:
  void begin_use(PersistentMemory&);
  void open_allocator(const StepStreams&);
  void serve(int buffer, std::int64_t step, void*& slot, int stream);
  // The kind of persistent memory that holds the buffer; nullopt if none does.
  std::optional<KeptKind> kept_kind(std::size_t buffer) const;
  void take(std::size_t buffer, std::vector<void*>& slots);
  void count(const Buffer&, std::int64_t bytes);
  void fill(std::size_t buffer, ContentsCache&, const std::vector<void*>& slots,
            cudaStream_t) const;

  // Releases the memory for the next step, after all members below are destroyed.
  struct EndOfUse {
    void operator()(PersistentMemory* kept) const noexcept { kept->end(); }
  };

  const StepPlan& plan_;
  std::unique_ptr<PersistentMemory, EndOfUse> kept_;
  std::int64_t free_at_first_ = 0;  // by the driver's report, and what its place kept besides
  std::vector<std::vector<void*>> slots_;     // by buffer, then slot
  std::unique_ptr<CudaDeviceMemory> driver_;  // of the step's own allocator
  std::unique_ptr<StepAllocator> served_;
  ManagedBuffers managed_;
  std::optional<StepPool> pool_;
  std::vector<void*> overwritten_;  // allocated within the step and never released by it
  // Current value and maximum of a sum of bytes, in program order. There is one for each purpose,
  // and one each for all device memory, for memory taken from the driver during steps, and for
  // pinned host memory.
  struct Level {
    std::int64_t now = 0;
    std::int64_t most = 0;
    void change(std::int64_t bytes) {
      now += bytes;
      if (now > most) most = now;
    }
  };
  std::array<Level, purpose_count> by_purpose_;
  Level device_;
  Level from_driver_;
  Level pinned_;
};

}  // namespace stepgate
