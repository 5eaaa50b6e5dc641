// SPDX-License-Identifier: MIT
// Host costs of allocating, releasing and registering memory. timeline.cpp has the rest of a
// timeline.
#include <algorithm>

#include "base/text/units.h"
#include "device/device.h"
#include "device/simulated/timeline.h"
#include "plan/allocate/pool_refusal.h"
#include "plan/count/step_memory.h"

namespace stepgate {
namespace {

// Cost of taking a block from an allocator's own cache, or of giving it back: half of what
// allocators_bench shows for a pair.
constexpr Nanoseconds served_nanoseconds = 100;

}  // namespace

// Completes frees across streams on every stream whose issued work is done.
void Timeline::catch_up_allocator() {
  for (int stream = 0; stream < std::ssize(streams_); ++stream) {
    if (streams_[static_cast<std::size_t>(stream)] <= host_) memory_.finish(stream);
  }
}

// Charges the time of the driver calls that the allocator made since `before`.
void Timeline::pay_driver(const MemoryStatistics& before) {
  const MemoryStatistics& after = served_->statistics();
  const bool expandable = plan_.allocator->rules.segments == SegmentKind::expandable;
  for (std::int64_t call_number = before.num_device_free; call_number < after.num_device_free;
       ++call_number) {
    recorder_.begin_call({CallKind::release, expandable ? "cuMemUnmap" : "cudaFree", true}, host_);
    wait_until(all_work_end());
    pass_host(profile_.host.free_nanoseconds);
    recorder_.end_call(host_);
  }
  for (std::int64_t call_number = before.num_device_alloc; call_number < after.num_device_alloc;
       ++call_number) {
    call({CallKind::allocate, expandable ? "cuMemCreate" : "cudaMalloc"},
         profile_.host.malloc_nanoseconds);
  }
  const std::int64_t taken = after.reserved_bytes.all.current - before.reserved_bytes.all.current;
  if (taken != 0) recorder_.memory(taken, MemoryKind::device, host_);
}

void Timeline::serve(const Operation& operation, const Allocate& allocate, std::int64_t step) {
  catch_up_allocator();
  const MemoryStatistics before = served_->statistics();
  const auto refusal = served_->allocate(allocate.buffer, step, operation.stream);
  pass_host(served_nanoseconds);
  pay_driver(before);
  if (refusal) {
    throw DeviceError("variant '" + plan_.variant + "', '" + operation.name + "': " +
                      in_words(*refusal, buffer(allocate.buffer).name) + "; " + way_out(*refusal));
  }
}

// Captures allocations before the first step; this costs the first step no time.
void Timeline::capture_allocations() {
  const std::vector<const Operation*> captured = served_by_capture(plan_);
  if (captured.empty()) return;
  served_->begin_capture();
  for (const Operation* operation : captured) {
    if (const auto refusal = served_->serve(*operation, 0)) {
      throw DeviceError("variant '" + plan_.variant +
                        "': " + in_words(*refusal, "the graph: " + operation->name) + "; " +
                        way_out(*refusal));
    }
  }
  served_->end_capture();
}

// Takes the memory from the pool. Returns whether the driver had to grow the pool.
bool Timeline::take_from_pool(const Operation& operation, const Buffer& taken) {
  if (plan_.pool_cap_bytes && pool_.live_bytes() + taken.bytes > *plan_.pool_cap_bytes) {
    const PoolRefusal refusal{
        .requested_bytes = taken.bytes,
        .live_bytes = pool_.live_bytes(),
        .reserved_bytes = pool_.live_bytes(),
        .device_free_bytes = profile_.memory_bytes - kept_bytes(plan_) - pool_.live_bytes(),
        .cap_bytes = plan_.pool_cap_bytes};
    throw DeviceError("variant '" + plan_.variant + "', '" + operation.name +
                      "': " + in_words(refusal, taken.name) + "; " + way_out(refusal));
  }
  return pool_.allocate(taken.bytes);
}

void Timeline::empty_cache() {
  catch_up_allocator();
  const MemoryStatistics before = served_->statistics();
  served_->empty_cache();
  pay_driver(before);
}

void Timeline::allocate(const Operation& operation, const Allocate& allocate, std::int64_t step) {
  if (operation.captured) return;
  const Buffer& taken = buffer(allocate.buffer);
  if (taken.allocated_by == AllocatedBy::step_allocator) return serve(operation, allocate, step);
  const HostCosts& costs = profile_.host;
  Nanoseconds cost = costs.malloc_nanoseconds;
  if (taken.allocated_by == AllocatedBy::cuda) {
    cuda_live_bytes_ += taken.bytes;
  } else {
    const bool grows = take_from_pool(operation, taken);
    cost = grows ? costs.pool_grow_nanoseconds : costs.malloc_async_nanoseconds;
  }
  call(call_of_allocation(taken.allocated_by), cost);
  recorder_.memory(taken.bytes, MemoryKind::device, host_);
}

void Timeline::release(const Operation& operation, const Release& release, std::int64_t step) {
  if (operation.captured) return;
  const Buffer& given_back = buffer(release.buffer);
  if (given_back.allocated_by == AllocatedBy::step_allocator) {
    served_->release(release.buffer, step);
    return pass_host(served_nanoseconds);
  }
  recorder_.begin_call(call_of_release(given_back.allocated_by), host_);
  if (given_back.allocated_by == AllocatedBy::cuda) {
    wait_until(all_work_end());
    pass_host(profile_.host.free_nanoseconds);
    cuda_live_bytes_ -= given_back.bytes;
  } else {
    pass_host(profile_.host.malloc_async_nanoseconds);
    pool_.release(given_back.bytes);
  }
  recorder_.end_call(host_);
  recorder_.memory(-given_back.bytes, MemoryKind::device, host_);
}

void Timeline::register_host(const RegisterHost& lock) {
  const std::int64_t bytes = buffer(lock.buffer).bytes;
  call({CallKind::pin, "cudaHostRegister"},
       profile_.host.register_nanoseconds_per_mib * bytes / mebibyte);
  recorder_.memory(bytes, MemoryKind::pinned, host_);
}

void Timeline::unregister_host(const UnregisterHost& unlock) {
  const std::int64_t bytes = buffer(unlock.buffer).bytes;
  recorder_.begin_call({CallKind::unpin, "cudaHostUnregister", true}, host_);
  wait_until(all_work_end());
  pass_host(profile_.host.unregister_nanoseconds_per_mib * bytes / mebibyte);
  recorder_.end_call(host_);
  recorder_.memory(-bytes, MemoryKind::pinned, host_);
}

std::int64_t Timeline::driver_bytes() const {
  if (served_)
    return served_->statistics().reserved_bytes.all.current;  // includes the plan's own buffers
  return kept_bytes(plan_) + cuda_live_bytes_ + pool_.held_bytes();
}

}  // namespace stepgate
