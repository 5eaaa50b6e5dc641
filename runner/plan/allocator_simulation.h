// SPDX-License-Identifier: MIT
// The behaviour of a step's allocator over many steps, simulated without a device: its blocks, the
// memory that it reserves for them, and the requests that it refuses.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "plan/allocators/memory_allocator.h"

namespace stepgate {

// Results of simulating the allocator. A step ends at its first refused request: it frees what it
// holds and allocates nothing more. A training loop that catches the error and continues with the
// next batch does the same.
struct AllocatorSimulation {
  std::int64_t steps = 0;  // in which refusals and retries are counted
  std::int64_t refused_steps = 0;
  std::int64_t ooms = 0;
  std::int64_t retries = 0;          // times that the whole cache was freed for a request
  std::int64_t peak_live_bytes = 0;  // bytes of blocks
  std::int64_t reserved_at_peak_live_bytes = 0;
  std::int64_t peak_reserved_bytes = 0;
  // Slope per step of the live bytes at the ends of the periods in the second half: the Theil-Sen
  // estimate, which is the median of the slopes between any two.
  double live_slope_bytes = 0;
  std::int64_t live_after_empty_cache_bytes = 0;  // after `steps`
  // Describes the first refusal with its step and operation; empty when nothing was refused.
  std::string first_refusal;
  // The number of steps until the driver calls of a period repeat. Before, the cache still looks
  // for pieces that fit. nullopt if the simulated steps are too few to tell.
  std::optional<std::int64_t> settled_after = {};
  // The progress of the streams decides when memory can be used again, and a plan does not know it.
  // So more memory may be reserved than is counted here.
  bool depends_on_streams = false;
};

}  // namespace stepgate
