// SPDX-License-Identifier: MIT
#include "plan/allocators/caching/caching_rules.h"

#include <bit>

#include "base/require.h"

namespace stepgate {
namespace {

std::int64_t next_multiple(std::int64_t bytes, std::int64_t of) {
  return (bytes + of - 1) / of * of;
}

// Rounds up to the next of `divisions` evenly spaced sizes between two powers of two.
std::int64_t next_division(std::int64_t bytes, std::int64_t divisions) {
  const auto power = static_cast<std::int64_t>(std::bit_floor(static_cast<std::uint64_t>(bytes)));
  return power == bytes ? bytes : next_multiple(bytes, power / divisions);
}

}  // namespace

std::int64_t rounded_size(std::int64_t bytes, const CachingRules& rules) {
  require(bytes > 0 && bytes <= largest_request_bytes, "a request has bytes that can be rounded");
  if (bytes < smallest_block_bytes) return smallest_block_bytes;
  if (rules.round_divisions > 1 && bytes > smallest_block_bytes * rules.round_divisions)
    return next_division(bytes, rules.round_divisions);
  return next_multiple(bytes, smallest_block_bytes);
}

std::int64_t segment_size(std::int64_t rounded_bytes) {
  if (rounded_bytes <= largest_small_bytes) return small_segment_bytes;
  if (rounded_bytes < own_segment_from_bytes) return large_segment_bytes;
  return next_multiple(rounded_bytes, own_segment_multiple_bytes);
}

bool leaves_remainder(std::int64_t block_bytes, std::int64_t rounded_bytes, PoolSize pool,
                      const CachingRules& rules) {
  const std::int64_t remainder = block_bytes - rounded_bytes;
  if (pool == PoolSize::small || rules.segments == SegmentKind::expandable)
    return remainder >= smallest_block_bytes;
  return !rules.too_large_to_split(rounded_bytes) && remainder > largest_small_bytes;
}

bool may_serve(std::int64_t block_bytes, std::int64_t rounded_bytes, const CachingRules& rules) {
  if (!rules.split_max_bytes) return true;
  if (!rules.too_large_to_split(rounded_bytes)) return !rules.too_large_to_split(block_bytes);
  return block_bytes < rounded_bytes + rules.non_split_rounding_bytes;
}

}  // namespace stepgate
