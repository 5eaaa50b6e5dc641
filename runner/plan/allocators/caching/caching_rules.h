// SPDX-License-Identifier: MIT
// The numbers of PyTorch's caching allocator: how large a block, a segment and a remainder are.
// Source: c10/cuda/CUDACachingAllocator.cpp and c10/core/AllocatorConfig.h of PyTorch. Pure
// functions; the allocator keeps the state.
#pragma once

#include <cstdint>
#include <optional>

#include "plan/allocators/memory_allocator.h"

namespace stepgate {

constexpr std::int64_t smallest_block_bytes = 512;
constexpr std::int64_t largest_small_bytes = std::int64_t{1} << 20;  // larger ones: large pool
constexpr std::int64_t small_segment_bytes = std::int64_t{2} << 20;
constexpr std::int64_t large_segment_bytes = std::int64_t{20} << 20;
constexpr std::int64_t own_segment_from_bytes = std::int64_t{10} << 20;  // larger: own segment
constexpr std::int64_t own_segment_multiple_bytes = std::int64_t{2} << 20;
// PyTorch accepts only a max_split_size above this.
constexpr std::int64_t split_max_above_bytes = large_segment_bytes;

// User settings, as in PYTORCH_CUDA_ALLOC_CONF.
struct CachingRules {
  SegmentKind segments = SegmentKind::fixed;  // expandable_segments
  // roundup_power2_divisions: a power of 2; 0 and 1 round to multiples of 512 bytes.
  std::int64_t round_divisions = 0;
  // max_split_size: larger blocks are not split and serve only requests near their size.
  std::optional<std::int64_t> split_max_bytes = {};
  std::int64_t non_split_rounding_bytes = large_segment_bytes;  // max_non_split_rounding
  // garbage_collection_threshold: the share of the cap above which old blocks are given back before
  // the device is asked for memory; 0: never.
  double garbage_collection_threshold = 0;

  bool too_large_to_split(std::int64_t bytes) const {
    return split_max_bytes && bytes >= *split_max_bytes;
  }
};

// The size of the block that serves a request.
std::int64_t rounded_size(std::int64_t bytes, const CachingRules&);

inline PoolSize pool_for(std::int64_t rounded_bytes) {
  return rounded_bytes <= largest_small_bytes ? PoolSize::small : PoolSize::large;
}

// The size of the segment to take from the device when no free block serves the request.
std::int64_t segment_size(std::int64_t rounded_bytes);

// Whether the rest of a block beyond the request becomes a free block.
bool leaves_remainder(std::int64_t block_bytes, std::int64_t rounded_bytes, PoolSize,
                      const CachingRules&);

// Whether a free block that is large enough may serve the request.
bool may_serve(std::int64_t block_bytes, std::int64_t rounded_bytes, const CachingRules&);

inline std::int64_t page_size(PoolSize pool) {
  return pool == PoolSize::small ? small_segment_bytes : large_segment_bytes;
}

}  // namespace stepgate
