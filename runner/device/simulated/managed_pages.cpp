// SPDX-License-Identifier: MIT
#include "device/simulated/managed_pages.h"

#include <algorithm>
#include <bit>
#include <utility>

namespace stepgate {

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

std::int64_t host_faults_for(std::int64_t pages) {
  constexpr std::int64_t block_pages = (std::int64_t{2} << 20) / ManagedPages::page_bytes;
  const auto of_block = [](std::int64_t count) -> std::int64_t {
    if (count == 0) return 0;
    return 1 + std::bit_width(static_cast<std::uint64_t>(count - 1));
  };
  return pages / block_pages * of_block(block_pages) + of_block(pages % block_pages);
}

}  // namespace stepgate
