// SPDX-License-Identifier: MIT
#include "device/simulated/managed_pages.h"

#include <utility>

namespace stepgate {

ManagedPages::ManagedPages(const StepPlan& plan) {
  for (const Buffer& buffer : plan.buffers) {
    const std::int64_t blocks =
        buffer.memory == MemoryKind::managed ? (buffer.bytes + block_bytes - 1) / block_bytes : 0;
    blocks_.emplace_back(
        static_cast<std::size_t>(buffer.slots),
        std::vector<PagesAre>(static_cast<std::size_t>(blocks), PagesAre::on_host));
  }
}

std::int64_t ManagedPages::bring(const BufferUse& use, std::int64_t step, PagesAre place) {
  auto& slots = blocks_[static_cast<std::size_t>(use.buffer)];
  auto& blocks = slots[static_cast<std::size_t>(step) % slots.size()];
  if (blocks.empty() || use.bytes == 0) return 0;
  const std::int64_t last = (use.offset_bytes + use.bytes - 1) / block_bytes;
  std::int64_t moved = 0;
  for (std::int64_t block = use.offset_bytes / block_bytes; block <= last; ++block) {
    moved += std::exchange(blocks[static_cast<std::size_t>(block)], place) != place;
  }
  return moved;
}

}  // namespace stepgate
