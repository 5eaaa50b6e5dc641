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

// Managed memory of one step, within bounds, and what the driver is told of it.
class ManagedBuffers {
 public:
  // Throws DeviceError where the plan wants more managed memory than is modest, or where the host
  // may not touch it while the device works.
  explicit ManagedBuffers(const StepPlan&);

  // Lives as long as this. Throws DeviceError.
  void* take(const Buffer&);

  std::int64_t bytes() const { return bytes_; }

 private:
  std::vector<ManagedMemory> owned_;
  std::int64_t bytes_ = 0;
};

// The driver's stream-ordered memory pool of one step, so that what one variant keeps does not
// serve another, and what to say when it refuses.
class StepPool {
 public:
  // With the plan's threshold and cap. Throws DeviceError.
  explicit StepPool(const StepPlan&);

  // In the stream's order. Throws DeviceError; where the pool refuses, with what it had.
  void* take(const Buffer&, std::int64_t step, cudaStream_t) const;

  // The most that it has taken from the device.
  std::int64_t most_reserved_bytes() const { return bytes(cudaMemPoolAttrReservedMemHigh); }

 private:
  std::int64_t bytes(cudaMemPoolAttr) const;
  [[noreturn]] void refuse(const Buffer&, std::int64_t step) const;

  const StepPlan& plan_;
  MemoryPool pool_;
};

class CudaBuffers {
 public:
  // Takes everything that the plan keeps and fills it, device memory in the order of the compute
  // stream. Throws DeviceError; for a lack of memory with
  // what was asked and what was free. `kept` is this step's alone until it goes, and the streams
  // outlive it.
  CudaBuffers(const StepPlan&, ContentsCache&, PersistentMemory& kept, const StepStreams&);
  ~CudaBuffers();

  // Address in the slot that the step uses. Null while a buffer that comes and goes is not there.
  void* address(int buffer, std::int64_t step) const {
    const std::vector<void*>& slots = slots_[static_cast<std::size_t>(buffer)];
    return slots[static_cast<std::size_t>(step) % slots.size()];
  }

  // Gives a buffer that is kept its first contents again, in the stream's order. Others have none.
  void fill_again(int buffer, ContentsCache&, cudaStream_t) const;

  // For buffers that come and go.
  void allocate(int buffer, std::int64_t step, int stream, cudaStream_t);
  void release(int buffer, std::int64_t step, cudaStream_t stream);
  // For the step's own allocator, if it has one.
  void empty_cache();
  // Around the capture of a graph: what it allocates lies in memory that stays its own.
  void begin_capture();
  void end_capture();

  // Excludes bytes that the driver has allocated since loading from the memory of the step.
  void leave_out(std::int64_t bytes) { free_at_first_ -= bytes; }

  // Since it was loaded. Asks the driver too, so all work must be done.
  MemoryUse use() const;

  // Copies a slot to host memory, waiting for it.
  std::vector<std::byte> read(int buffer, std::int64_t step) const;

 private:
  void begin_use(PersistentMemory&);
  void open_allocator(const StepStreams&);
  void serve(int buffer, std::int64_t step, void*& slot, int stream);
  // The kind of persistent memory that holds the buffer; nothing if none does.
  std::optional<KeptKind> kept_kind(std::size_t buffer) const;
  void take(std::size_t buffer, std::vector<void*>& slots);
  void count(const Buffer&, std::int64_t bytes);
  void fill(std::size_t buffer, ContentsCache&, const std::vector<void*>& slots,
            cudaStream_t) const;

  // Gives the memory back for the next step, after everything below has gone.
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
  // Now and at most, in program order: device memory by purpose, all of it together, what of it
  // came straight from the driver while steps ran, and locked host memory.
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
