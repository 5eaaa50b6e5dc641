// SPDX-License-Identifier: MIT
// What managed memory costs: the pages that a kernel or the host finds on the other side, and those
// that a prefetch has brought before. The rest of a timeline is timeline.cpp's.
//
// The costs of a fault and of the host's own copy are a model, not measured.
#include <algorithm>

#include "device/simulated/timeline.h"

namespace stepgate {
namespace {

// The driver notices, stops what has faulted, maps, and lets it go on.
constexpr Nanoseconds device_fault_nanoseconds = 30'000;
constexpr Nanoseconds host_fault_nanoseconds = 15'000;
// One thread, from ordinary memory to pages that are there.
constexpr std::int64_t host_copy_bytes_per_microsecond = 10'000;

}  // namespace

// Of so many blocks within the use; a use may be smaller than one.
std::int64_t Timeline::bytes_of_blocks(std::int64_t blocks, const BufferUse& use) const {
  return std::min(blocks * ManagedPages::block_bytes, buffer(use.buffer).bytes);
}

Nanoseconds Timeline::fault_in(const LaunchKernel& launch, std::int64_t step, Nanoseconds begin) {
  Nanoseconds now = begin;
  for (const BufferUse& use : launch.operands) {
    const std::int64_t blocks = pages_.bring(use, step, PagesAre::on_device);
    if (blocks == 0) continue;
    const std::int64_t bytes = bytes_of_blocks(blocks, use);
    const Nanoseconds end = now + blocks * device_fault_nanoseconds + profile_.pinned.of(bytes);
    recorder_.pages(PageEventKind::device_faults, blocks, now, end);
    recorder_.pages(PageEventKind::to_device, bytes, now, end);
    now = end;
  }
  return now - begin;
}

void Timeline::copy_on_host(const HostCopies& copy, std::int64_t step) {
  const std::int64_t blocks = pages_.bring(copy.to, step, PagesAre::on_host);
  if (blocks > 0) {
    const std::int64_t bytes = bytes_of_blocks(blocks, copy.to);
    const Nanoseconds begin = host_;
    pass_host(blocks * host_fault_nanoseconds + profile_.pinned.of(bytes));
    recorder_.pages(PageEventKind::host_faults, blocks, begin, host_);
    recorder_.pages(PageEventKind::to_host, bytes, begin, host_);
  }
  pass_host(copy.to.bytes * 1000 / host_copy_bytes_per_microsecond);
}

void Timeline::prefetch(const Operation& operation, const Prefetch& prefetch, std::int64_t step) {
  call({CallKind::other, "cudaMemPrefetchAsync"}, profile_.host.copy_call_nanoseconds);
  const std::int64_t blocks = pages_.bring(prefetch.what, step, PagesAre::on_device);
  if (blocks == 0) return;
  const std::int64_t bytes = bytes_of_blocks(blocks, prefetch.what);
  const Nanoseconds begin = std::max(ready(operation), to_device_engine_);
  to_device_engine_ = begin + scaled_for_device(profile_.pinned.of(bytes));
  finish(operation, to_device_engine_);
  recorder_.pages(PageEventKind::to_device, bytes, begin, to_device_engine_);
}

}  // namespace stepgate
