// SPDX-License-Identifier: MIT
// The behaviour of a step's allocator over so many steps, counted ahead without a device: its
// blocks, the memory it reserves for them, and what it refuses.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "plan/allocators/memory_allocator.h"

namespace stepgate {

// A step ends at its first refused request: it frees what it holds and allocates nothing more. A
// training loop that catches the error and continues with the next batch does the same.
struct AllocatorSimulation {
  std::int64_t steps = 0;
  std::int64_t refused_steps = 0;
  std::int64_t ooms = 0;
  std::int64_t retries = 0;          // times that all of the cache was given back for a request
  std::int64_t peak_live_bytes = 0;  // in blocks
  std::int64_t reserved_at_peak_live_bytes = 0;
  std::int64_t peak_reserved_bytes = 0;
  // Slope of the live bytes at the ends of the steps, without the first half (Theil and Sen: the
  // median of the slopes between any two).
  double live_slope_bytes = 0;
  std::int64_t live_after_empty_cache_bytes = 0;
  // In words, with the step and the operation; empty when nothing was refused.
  std::string first_refusal;
  // So many steps pass before it asks the driver for the same again as a period earlier: before,
  // its cache is still finding pieces that fit. Nothing where that is not known after these steps.
  std::optional<std::int64_t> settled_after = {};
  // When memory can be used again depends on how far the streams are, which no plan knows: what is
  // reserved may be more than this.
  bool depends_on_streams = false;
};

}  // namespace stepgate
