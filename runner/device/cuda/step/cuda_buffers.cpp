// SPDX-License-Identifier: MIT
#include "device/cuda/step/cuda_buffers.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <utility>

#include "base/require.h"
#include "base/text/units.h"
#include "device/cuda/check.h"
#include "device/cuda/step/fill_on_device.h"
#include "device/device.h"
#include "device/planned_memory.h"
#include "plan/allocate/pool_refusal.h"
#include "plan/analyse/access.h"

namespace stepgate {
namespace {

// Throws DeviceError with the requested and the free bytes when the device has no memory left for a
// buffer.
void check_allocation(cudaError_t status, const Buffer& buffer) {
  if (status == cudaSuccess) return;
  (void)cudaGetLastError();
  std::size_t free_bytes = 0;
  std::size_t total_bytes = 0;
  (void)cudaMemGetInfo(&free_bytes, &total_bytes);
  check(status, fmt::format("allocate {:.3f} MiB for '{}' where {:.3f} MiB are free",
                            static_cast<double>(buffer.bytes) / mebibyte, buffer.name,
                            static_cast<double>(free_bytes) / mebibyte));
}

// More managed memory than physical memory can hang a GPU for all processes.
void require_modest(const StepPlan& plan) {
  constexpr double largest_share = 0.25;
  double needed = 0;
  for (const Buffer& buffer : plan.buffers) {
    if (buffer.memory == MemoryKind::managed)
      needed += static_cast<double>(buffer.bytes) * static_cast<double>(buffer.slots);
  }
  std::size_t free_bytes = 0;
  std::size_t total_bytes = 0;
  check(cudaMemGetInfo(&free_bytes, &total_bytes), "ask for the free memory");
  if (needed > largest_share * static_cast<double>(free_bytes)) {
    throw DeviceError(fmt::format(
        "variant '{}' asks for {:.0f} MiB of managed memory, more than a quarter of the {:.0f} MiB "
        "that are free; lower 'batch.size' or 'batch.sample_bytes'",
        plan.variant, needed / mebibyte, static_cast<double>(free_bytes) / mebibyte));
  }
  int device = 0;
  int concurrent = 0;
  check(cudaGetDevice(&device), "ask for the current device");
  check(cudaDeviceGetAttribute(&concurrent, cudaDevAttrConcurrentManagedAccess, device),
        "ask for a device attribute");
  if (concurrent == 0) {
    throw DeviceError(fmt::format(
        "variant '{}' writes managed memory while the GPU works, which this GPU does not allow; "
        "set 'transfer.host' to pinned",
        plan.variant));
  }
}

cudaMemoryAdvise in_words_of_cuda(ManagedAdvice advice) {
  switch (advice) {
    case ManagedAdvice::read_mostly:
      return cudaMemAdviseSetReadMostly;
    case ManagedAdvice::preferred:
      return cudaMemAdviseSetPreferredLocation;
    case ManagedAdvice::accessed_by:
      return cudaMemAdviseSetAccessedBy;
    case ManagedAdvice::none:
      break;
  }
  require(false, "there is something to advise");
  return cudaMemAdviseUnsetReadMostly;
}

void advise(const Buffer& buffer, const void* slot) {
  if (buffer.advice == ManagedAdvice::none) return;
  int device = 0;
  check(cudaGetDevice(&device), "ask for the current device");
  const cudaMemLocation location{.type = cudaMemLocationTypeDevice, .id = device};
  check(cudaMemAdvise(slot, static_cast<std::size_t>(buffer.bytes), in_words_of_cuda(buffer.advice),
                      location),
        fmt::format("advise the driver of '{}'", buffer.name));
}

MemoryPool make_pool(const StepPlan& plan) {
  int device = 0;
  check(cudaGetDevice(&device), "ask for the current device");
  cudaMemPoolProps properties{};
  properties.allocType = cudaMemAllocationTypePinned;
  properties.location = {cudaMemLocationTypeDevice, device};
  if (plan.pool_cap_bytes) {
    require(*plan.pool_cap_bytes > 0,
            "a pool that may take nothing is not made: 0 would be no cap");
    properties.maxSize = static_cast<std::size_t>(*plan.pool_cap_bytes);
  }
  cudaMemPool_t pool = nullptr;
  check(cudaMemPoolCreate(&pool, &properties), "create the step's memory pool");
  MemoryPool owned(pool);
  std::uint64_t keep = plan.keep_bytes ? static_cast<std::uint64_t>(*plan.keep_bytes)
                                       : std::numeric_limits<std::uint64_t>::max();
  check(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &keep),
        "set what the memory pool keeps");
  return owned;
}

// Whether the step itself pins the buffer.
bool locked_by_the_step(const StepPlan& plan, std::size_t buffer) {
  return std::any_of(plan.operations.begin(), plan.operations.end(),
                     [&](const Operation& operation) {
                       const auto* lock = std::get_if<RegisterHost>(&operation.action);
                       return lock && static_cast<std::size_t>(lock->buffer) == buffer;
                     });
}

constexpr std::int64_t worth_a_look = 1 << 20;  // bytes of a slot above which checking pays off

// Whether no operation of the step writes the buffer.
bool is_only_read(const StepPlan& plan, std::size_t buffer) {
  return std::ranges::none_of(plan.operations, [&](const Operation& operation) {
    return std::ranges::any_of(accesses_of(plan, operation), [&](const BufferAccess& access) {
      return static_cast<std::size_t>(access.use.buffer) == buffer && access.access != Access::read;
    });
  });
}

bool comes_and_goes(const Buffer& buffer) {
  return buffer.allocated_by != AllocatedBy::the_plan;
}

MemoryThere memory_by_the_driver() {
  std::size_t free_bytes = 0;
  std::size_t total_bytes = 0;
  check(cudaMemGetInfo(&free_bytes, &total_bytes), "ask for the free memory");
  return {static_cast<std::int64_t>(free_bytes), static_cast<std::int64_t>(total_bytes)};
}

bool is_pinned(const void* memory) {
  cudaPointerAttributes attributes{};
  return cudaPointerGetAttributes(&attributes, memory) == cudaSuccess &&
         attributes.type == cudaMemoryTypeHost;
}

}  // namespace

ManagedBuffers::ManagedBuffers(const StepPlan& plan) {
  if (uses_managed_memory(plan)) require_modest(plan);
}

void* ManagedBuffers::take(const Buffer& buffer) {
  void* memory = nullptr;
  check_allocation(cudaMallocManaged(&memory, static_cast<std::size_t>(buffer.bytes)), buffer);
  owned_.emplace_back(memory);
  bytes_ += buffer.bytes;
  advise(buffer, memory);
  return memory;
}

StepPool::StepPool(const StepPlan& plan) : plan_(plan), pool_(make_pool(plan)) {}

void* StepPool::take(const Buffer& asked, std::int64_t step, cudaStream_t stream) const {
  void* memory = nullptr;
  const cudaError_t status =
      cudaMallocFromPoolAsync(&memory, static_cast<std::size_t>(asked.bytes), pool_.get(), stream);
  if (status == cudaErrorMemoryAllocation) refuse(asked, step);
  check(status, "allocate from the memory pool");
  return memory;
}

std::int64_t StepPool::bytes(cudaMemPoolAttr attribute) const {
  std::uint64_t bytes = 0;
  check(cudaMemPoolGetAttribute(pool_.get(), attribute, &bytes),
        "ask how much the memory pool has");
  return static_cast<std::int64_t>(bytes);
}

void StepPool::refuse(const Buffer& asked, std::int64_t step) const {
  (void)cudaGetLastError();  // the next launch must not see it
  std::size_t free_bytes = 0;
  std::size_t total_bytes = 0;
  check(cudaMemGetInfo(&free_bytes, &total_bytes), "ask for the free memory");
  const PoolRefusal refusal{.requested_bytes = asked.bytes,
                            .live_bytes = bytes(cudaMemPoolAttrUsedMemCurrent),
                            .reserved_bytes = bytes(cudaMemPoolAttrReservedMemCurrent),
                            .device_free_bytes = static_cast<std::int64_t>(free_bytes),
                            .cap_bytes = plan_.pool_cap_bytes};
  throw DeviceError(fmt::format("variant '{}', step {}: {}; {}", plan_.variant, step,
                                in_words(refusal, asked.name), way_out(refusal)));
}

CudaBuffers::CudaBuffers(const StepPlan& plan, ContentsCache& contents, PersistentMemory& kept,
                         const StepStreams& streams)
    : plan_(plan), managed_(plan) {
  begin_use(kept);
  if (plan.allocator) open_allocator(streams);
  const bool pooled = std::any_of(
      plan.buffers.begin(), plan.buffers.end(),
      [](const Buffer& buffer) { return buffer.allocated_by == AllocatedBy::cuda_async; });
  if (pooled) pool_.emplace(plan);
  for (std::size_t index = 0; index < plan.buffers.size(); ++index) {
    const Buffer& buffer = plan.buffers[index];
    std::vector<void*>& slots =
        slots_.emplace_back(static_cast<std::size_t>(buffer.slots), nullptr);
    if (comes_and_goes(buffer)) continue;
    count(buffer, buffer.bytes * buffer.slots);
    take(index, slots);
    fill(index, contents, slots, streams[compute_stream]);
  }
}

CudaBuffers::~CudaBuffers() {
  for (std::size_t index = 0; index < slots_.size(); ++index) {
    if (plan_.buffers[index].allocated_by == AllocatedBy::step_allocator) continue;
    if (comes_and_goes(plan_.buffers[index])) {
      for (void* left : slots_[index]) (void)cudaFree(left);
    } else if (locked_by_the_step(plan_, index)) {
      // A step that failed may have left memory pinned, and the driver would still know the pages
      // after they are freed.
      for (void* left : slots_[index]) {
        if (is_pinned(left)) (void)cudaHostUnregister(left);
      }
    }
  }
  // ci/jobs/weekly sets the variable to have a leak that compute-sanitizer must find.
  if (!std::getenv("STEPGATE_KEEP_LEAKS")) {
    for (void* left : overwritten_) (void)cudaFree(left);
  }
  (void)cudaGetLastError();  // the next launch must not see what failed here
}

void CudaBuffers::begin_use(PersistentMemory& kept) {
  const auto [free, total] = memory_by_the_driver();
  free_at_first_ = free + kept.device_bytes();
  require_memory(plan_, {free_at_first_, total});
  KeptSizes wanted;
  std::int64_t other_bytes = planned_memory(plan_).peak_reserved_bytes;
  for (std::size_t index = 0; index < plan_.buffers.size(); ++index) {
    const auto kind = kept_kind(index);
    if (!kind) continue;
    const Buffer& buffer = plan_.buffers[index];
    auto& sizes = wanted[static_cast<std::size_t>(*kind)];
    sizes.insert(sizes.end(), static_cast<std::size_t>(buffer.slots), buffer.bytes);
    if (kind == KeptKind::device) other_bytes -= buffer.bytes * buffer.slots;
  }
  kept.begin(std::move(wanted), other_bytes, free);
  kept_.reset(&kept);
}

void CudaBuffers::open_allocator(const StepStreams& streams) {
  driver_ = std::make_unique<CudaDeviceMemory>(streams);
  served_ = std::make_unique<StepAllocator>(plan_, *driver_);
  if (const auto refusal = served_->take_kept()) {
    throw DeviceError(fmt::format("variant '{}': {}; {}", plan_.variant,
                                  in_words(*refusal, "what stays from step to step"),
                                  way_out(*refusal)));
  }
}

void CudaBuffers::serve(int buffer, std::int64_t step, void*& slot, int stream) {
  if (const auto refusal = served_->allocate(buffer, step, stream)) {
    const std::string& name = plan_.buffers[static_cast<std::size_t>(buffer)].name;
    throw DeviceError(fmt::format("variant '{}', step {}: {}; {}", plan_.variant, step,
                                  in_words(*refusal, name), way_out(*refusal)));
  }
  slot = reinterpret_cast<void*>(served_->address(buffer, step));
}

void CudaBuffers::empty_cache() {
  if (served_) served_->empty_cache();
}

void CudaBuffers::begin_capture() {
  if (!served_by_capture(plan_).empty()) served_->begin_capture();
}

void CudaBuffers::end_capture() {
  if (!served_by_capture(plan_).empty()) served_->end_capture();
}

std::optional<KeptKind> CudaBuffers::kept_kind(std::size_t index) const {
  const Buffer& buffer = plan_.buffers[index];
  if (comes_and_goes(buffer)) return std::nullopt;
  switch (buffer.memory) {
    case MemoryKind::device:
      // A buffer without bytes is part of an arena.
      if (plan_.allocator || buffer.bytes == 0) return std::nullopt;
      return KeptKind::device;
    case MemoryKind::pinned:
      return KeptKind::pinned;
    case MemoryKind::registered:
      return locked_by_the_step(plan_, index) ? KeptKind::pageable : KeptKind::registered;
    case MemoryKind::pageable:
      return KeptKind::pageable;
    case MemoryKind::managed:
      return std::nullopt;
  }
  return std::nullopt;
}

void CudaBuffers::take(std::size_t index, std::vector<void*>& slots) {
  const Buffer& buffer = plan_.buffers[index];
  const auto kind = kept_kind(index);
  for (std::size_t slot = 0; slot < slots.size(); ++slot) {
    if (kind == KeptKind::device) {
      check_allocation(kept_->take(*kind, slots[slot], buffer.bytes), buffer);
    } else if (kind) {
      check(kept_->take(*kind, slots[slot], buffer.bytes),
            fmt::format("allocate {} bytes of host memory for '{}'", buffer.bytes, buffer.name));
    } else if (buffer.memory == MemoryKind::managed) {
      slots[slot] = managed_.take(buffer);
    } else if (served_) {
      slots[slot] = reinterpret_cast<void*>(
          served_->address(static_cast<int>(index), static_cast<std::int64_t>(slot)));
    }
  }
}

// Skips host memory that an earlier load filled with the same contents and only read. Copying the
// batches of a suite in every load would take seconds. A small buffer is always copied: that is
// faster than finding out which operations write it.
void CudaBuffers::fill(std::size_t index, ContentsCache& contents, const std::vector<void*>& slots,
                       cudaStream_t stream) const {
  const Buffer& buffer = plan_.buffers[index];
  const auto bytes = static_cast<std::size_t>(buffer.bytes);
  if (bytes == 0) return;
  const auto kind = kept_kind(index);
  const bool may_stay = kind && kind != KeptKind::device && buffer.bytes >= worth_a_look;
  const bool stays = may_stay && is_only_read(plan_, index);
  for (std::size_t place = 0; place < slots.size(); ++place) {
    const auto slot = static_cast<std::int64_t>(place);
    if (buffer.memory == MemoryKind::device) {
      check(fill_on_device(buffer, slot, plan_.seed, slots[place], stream),
            fmt::format("fill '{}'", buffer.name));
      continue;
    }
    const void* held = nullptr;
    if (buffer.content == Content::zeros) {
      std::memset(slots[place], 0, bytes);
    } else {
      const auto content = contents.of(buffer, slot, plan_.seed);
      held = content.data();
      const bool is_there = kind && kept_->mark_of(*kind, slots[place]) == held;
      if (!is_there)
        std::copy(content.begin(), content.end(), static_cast<std::byte*>(slots[place]));
    }
    if (kind) kept_->mark_of(*kind, slots[place]) = stays ? held : nullptr;
  }
}

void CudaBuffers::fill_again(int buffer, ContentsCache& contents, cudaStream_t stream) const {
  const Buffer& again = buffer_at(plan_, buffer);
  if (comes_and_goes(again)) return;
  const auto index = static_cast<std::size_t>(buffer);
  fill(index, contents, slots_[index], stream);
}

void CudaBuffers::allocate(int buffer, std::int64_t step, int stream, cudaStream_t on) {
  const Buffer& asked = plan_.buffers[static_cast<std::size_t>(buffer)];
  std::vector<void*>& slots = slots_[static_cast<std::size_t>(buffer)];
  void*& slot = slots[static_cast<std::size_t>(step) % slots.size()];
  const auto bytes = static_cast<std::size_t>(asked.bytes);
  count(asked, asked.bytes);
  if (asked.allocated_by == AllocatedBy::step_allocator) return serve(buffer, step, slot, stream);
  // A step that never releases buffers allocates into a slot that still has memory.
  if (slot) overwritten_.push_back(std::exchange(slot, nullptr));
  if (asked.allocated_by == AllocatedBy::cuda) {
    check_allocation(cudaMalloc(&slot, bytes), asked);
  } else {
    slot = pool_->take(asked, step, on);
  }
}

void CudaBuffers::release(int buffer, std::int64_t step, cudaStream_t stream) {
  std::vector<void*>& slots = slots_[static_cast<std::size_t>(buffer)];
  void*& slot = slots[static_cast<std::size_t>(step) % slots.size()];
  const Buffer& given = plan_.buffers[static_cast<std::size_t>(buffer)];
  count(given, -given.bytes);
  if (given.allocated_by == AllocatedBy::step_allocator) {
    served_->release(buffer, step);
    slot = nullptr;
    return;
  }
  if (given.allocated_by == AllocatedBy::cuda) {
    check(cudaFree(slot), "free within the step");
  } else {
    check(cudaFreeAsync(slot, stream), "free to the pool within the step");
  }
  slot = nullptr;
}

void CudaBuffers::count(const Buffer& buffer, std::int64_t bytes) {
  if (takes_device_memory(buffer.memory)) {
    by_purpose_[static_cast<std::size_t>(buffer.purpose)].change(bytes);
    device_.change(bytes);
    if (buffer.allocated_by == AllocatedBy::cuda) from_driver_.change(bytes);
  } else if (buffer.memory != MemoryKind::pageable) {
    pinned_.change(bytes);
  }
}

// Returns the memory used. A pool reports what it took from the driver. Persistent memory counts by
// the sizes of this step's buffers, since its blocks may be larger for another step.
MemoryUse CudaBuffers::use() const {
  MemoryUse use;
  for (std::size_t purpose = 0; purpose < by_purpose_.size(); ++purpose) {
    use.allocated_bytes[purpose] = by_purpose_[purpose].most;
  }
  use.peak_allocated_bytes =
      served_ ? served_->statistics().allocated_bytes.all.peak : device_.most;
  use.pinned_bytes = pinned_.most;
  const std::int64_t in_pool = pool_ ? pool_->most_reserved_bytes() : 0;
  use.peak_reserved_bytes = kept_->asked_device_bytes() + from_driver_.most + managed_.bytes() +
                            in_pool + (served_ ? served_->statistics().reserved_bytes.all.peak : 0);
  const std::int64_t free_now = memory_by_the_driver().free_bytes + kept_->device_bytes();
  use.driver_bytes = free_at_first_ - free_now + kept_->asked_device_bytes();
  return use;
}

std::vector<std::byte> CudaBuffers::read(int buffer, std::int64_t step) const {
  std::vector<std::byte> bytes(
      static_cast<std::size_t>(plan_.buffers[static_cast<std::size_t>(buffer)].bytes));
  check(cudaMemcpy(bytes.data(), address(buffer, step), bytes.size(), cudaMemcpyDefault),
        "read a buffer back");
  return bytes;
}

}  // namespace stepgate
