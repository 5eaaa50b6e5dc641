// SPDX-License-Identifier: MIT
// What allocating, releasing and locking memory costs the host. The rest of a timeline is
// timeline.cpp's.
#include "device/simulated/timeline.h"

namespace stepgate {
namespace {

constexpr std::int64_t mebibyte = 1024 * 1024;

}  // namespace

void Timeline::allocate(const Operation& operation, const Allocate& allocate) {
  if (operation.captured) return;
  const Buffer& taken = buffer(allocate.buffer);
  const HostCosts& costs = profile_.host;
  const Nanoseconds pooled =
      pool_is_empty_ ? costs.pool_grow_nanoseconds : costs.malloc_async_nanoseconds;
  call(call_of_allocation(taken.allocated_by),
       taken.allocated_by == AllocatedBy::cuda ? costs.malloc_nanoseconds : pooled);
  recorder_.memory(taken.bytes, MemoryKind::device, host_);
}

void Timeline::release(const Operation& operation, const Release& release) {
  if (operation.captured) return;
  const Buffer& given_back = buffer(release.buffer);
  recorder_.begin_call(call_of_release(given_back.allocated_by), host_);
  if (given_back.allocated_by == AllocatedBy::cuda) {
    wait_until(all_work_end());
    pass_host(profile_.host.free_nanoseconds);
  } else {
    pass_host(profile_.host.malloc_async_nanoseconds);
    if (!plan_.keep_bytes) pool_is_empty_ = false;
  }
  recorder_.end_call(host_);
  recorder_.memory(-given_back.bytes, MemoryKind::device, host_);
}

void Timeline::lock_pages(const PageLock& lock) {
  const std::int64_t bytes = buffer(lock.buffer).bytes;
  call({CallKind::page_lock, "cudaHostRegister"},
       profile_.host.page_lock_nanoseconds_per_mib * bytes / mebibyte);
  recorder_.memory(bytes, MemoryKind::pinned, host_);
}

void Timeline::unlock_pages(const PageUnlock& unlock) {
  const std::int64_t bytes = buffer(unlock.buffer).bytes;
  recorder_.begin_call({CallKind::page_unlock, "cudaHostUnregister", true}, host_);
  wait_until(all_work_end());
  pass_host(profile_.host.page_unlock_nanoseconds_per_mib * bytes / mebibyte);
  recorder_.end_call(host_);
  recorder_.memory(-bytes, MemoryKind::pinned, host_);
}

// A pool that keeps nothing returns its memory whenever the host waits.
void Timeline::give_pool_back() {
  if (plan_.keep_bytes) pool_is_empty_ = true;
}

}  // namespace stepgate
