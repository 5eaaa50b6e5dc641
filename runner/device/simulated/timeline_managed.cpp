// SPDX-License-Identifier: MIT
// Costs of managed memory: page faults of a kernel or of the host, and prefetches. timeline.cpp has
// the rest of a timeline.
//
// The costs were measured on one H200 (driver 580, a kernel reads a batch of 4 MiB once). There
// were 65 to 70 faults of the device and 13 of the host per step. The kernel took 0.90 ms longer
// than from device memory. The host's writing took 1.0 ms longer (10 ms with the advice
// read-mostly), and a prefetch 0.195 ms.
#include <algorithm>
#include <bit>
#include <utility>

#include "device/simulated/timeline.h"

namespace stepgate {
namespace {

// One fault: the driver notices it, stops the faulting code, maps the page, and resumes.
constexpr Nanoseconds device_fault_nanoseconds = 12'500;
constexpr Nanoseconds host_fault_nanoseconds = 70'000;
// Cost of writing to a read-mostly page that has a copy on both sides: the device's copy is
// dropped, and no page moves.
constexpr Nanoseconds write_protected_nanoseconds = 10'000;
constexpr std::int64_t host_page_bytes = 4096;
constexpr Nanoseconds prefetch_call_nanoseconds = 60'000;
constexpr double prefetch_over_pinned_copy = 2.4;  // ratio of the times for the same bytes
// Rate of one thread that copies from ordinary memory to resident pages.
constexpr std::int64_t host_copy_bytes_per_microsecond = 10'000;

// Number of faults when the host writes all these pages and they are on the device. With every
// fault the driver doubles the range that it migrates, up to its blocks of 2 MiB.
std::int64_t host_faults_for(std::int64_t pages) {
  constexpr std::int64_t block_pages = (std::int64_t{2} << 20) / ManagedPages::page_bytes;
  const auto of_block = [](std::int64_t count) -> std::int64_t {
    if (count == 0) return 0;
    return 1 + std::bit_width(static_cast<std::uint64_t>(count - 1));
  };
  return pages / block_pages * of_block(block_pages) + of_block(pages % block_pages);
}

}  // namespace

ManagedPages::ManagedPages(const StepPlan& plan) {
  for (const Buffer& buffer : plan.buffers) {
    const std::int64_t pages =
        buffer.memory == MemoryKind::managed ? (buffer.bytes + page_bytes - 1) / page_bytes : 0;
    pages_.emplace_back(static_cast<std::size_t>(buffer.slots),
                        std::vector<PagesAre>(static_cast<std::size_t>(pages), PagesAre::on_host));
  }
}

std::int64_t ManagedPages::bring(const BufferUse& use, std::int64_t step, PagesAre place) {
  auto& slots = pages_[static_cast<std::size_t>(use.buffer)];
  auto& pages = slots[static_cast<std::size_t>(step) % slots.size()];
  if (pages.empty() || use.bytes == 0) return 0;
  const std::int64_t last = (use.offset_bytes + use.bytes - 1) / page_bytes;
  std::int64_t moved = 0;
  for (std::int64_t page = use.offset_bytes / page_bytes; page <= last; ++page) {
    moved += std::exchange(pages[static_cast<std::size_t>(page)], place) != place;
  }
  return moved;
}

bool ManagedPages::are_on_host(const BufferUse& use, std::int64_t step) const {
  const auto& slots = pages_[static_cast<std::size_t>(use.buffer)];
  const auto& pages = slots[static_cast<std::size_t>(step) % slots.size()];
  return std::any_of(pages.begin(), pages.end(),
                     [](PagesAre page) { return page == PagesAre::on_host; });
}

// Bytes of `pages` pages within the use; a use may be smaller than a page.
std::int64_t Timeline::bytes_of_pages(std::int64_t pages, const BufferUse& use) const {
  return std::min(pages * ManagedPages::page_bytes, buffer(use.buffer).bytes);
}

Nanoseconds Timeline::fault_in(const LaunchKernel& launch, std::int64_t step, Nanoseconds begin) {
  Nanoseconds now = begin;
  for (const BufferUse& use : launch.operands) {
    // With ManagedAdvice::accessed_by the device has mappings of its own, and reads host pages over
    // the bus.
    if (buffer(use.buffer).advice == ManagedAdvice::accessed_by) {
      if (pages_.are_on_host(use, step)) now += profile_.pinned.of(use.bytes);
      continue;
    }
    const std::int64_t pages = pages_.bring(use, step, PagesAre::on_device);
    if (pages == 0) continue;
    const std::int64_t bytes = bytes_of_pages(pages, use);
    const Nanoseconds end = now + pages * device_fault_nanoseconds + profile_.pinned.of(bytes);
    recorder_.pages(PageEventKind::device_faults, pages, now, end);
    recorder_.pages(PageEventKind::to_device, bytes, now, end);
    now = end;
  }
  return now - begin;
}

void Timeline::copy_on_host(const HostCopies& copy, std::int64_t step) {
  const std::int64_t pages = pages_.bring(copy.to, step, PagesAre::on_host);
  const std::int64_t bytes = bytes_of_pages(pages, copy.to);
  const Nanoseconds begin = host_;
  if (pages > 0 && buffer(copy.to.buffer).advice == ManagedAdvice::read_mostly) {
    const std::int64_t faults = (bytes + host_page_bytes - 1) / host_page_bytes;
    pass_host(faults * write_protected_nanoseconds);
    recorder_.pages(PageEventKind::host_faults, faults, begin, host_);
  } else if (pages > 0) {
    const std::int64_t faults = host_faults_for(pages);
    pass_host(faults * host_fault_nanoseconds);
    const Nanoseconds moving = host_;
    pass_host(profile_.pinned.of(bytes));
    recorder_.pages(PageEventKind::host_faults, faults, begin, host_);
    recorder_.pages(PageEventKind::to_host, bytes, moving, host_);
  }
  pass_host(copy.to.bytes * 1000 / host_copy_bytes_per_microsecond);
}

void Timeline::prefetch(const Operation& operation, const Prefetch& prefetch, std::int64_t step) {
  call({CallKind::other, "cudaMemPrefetchAsync"}, prefetch_call_nanoseconds);
  const std::int64_t pages = pages_.bring(prefetch.what, step, PagesAre::on_device);
  if (pages == 0) return;
  const std::int64_t bytes = bytes_of_pages(pages, prefetch.what);
  const Nanoseconds begin = std::max(ready(operation), to_device_engine_);
  const auto moving = static_cast<Nanoseconds>(prefetch_over_pinned_copy *
                                               static_cast<double>(profile_.pinned.of(bytes)));
  to_device_engine_ = begin + scaled_for_device(moving);
  finish(operation, to_device_engine_);
  recorder_.pages(PageEventKind::to_device, bytes, begin, to_device_engine_);
}

}  // namespace stepgate
