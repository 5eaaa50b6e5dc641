// SPDX-License-Identifier: MIT
#include "plan/allocators/memory_allocator.h"

namespace stepgate {

Refusal refusal_of(const MemoryStatistics& statistics, const DeviceMemory& memory,
                   std::optional<std::int64_t> cap_bytes) {
  const std::int64_t live = statistics.allocated_bytes.all.current;
  const std::int64_t active = statistics.active_bytes.all.current;
  const std::int64_t reserved = statistics.reserved_bytes.all.current;
  return {.live_bytes = live,
          .pending_bytes = active - live,
          .reserved_bytes = reserved,
          .free_inside_bytes = reserved - active,
          .device_free_bytes = memory.free_bytes(),
          .cap_bytes = cap_bytes};
}

}  // namespace stepgate
