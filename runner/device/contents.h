// SPDX-License-Identifier: MIT
// What buffers hold before the first step. Devices that hold real numbers share it, so that they
// all start from the same bits.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include "plan/step_plan.h"

namespace stepgate {

// Writes the initial content of one slot.
//   zeros    zero bytes
//   weights  uniform in [-scale, scale), stored in the buffer's dtype; depends on the seed, the
//            buffer's name and the element, but on no other part of the plan
//   payload  fp32 uniform in [-1, 1); depends on the seed, the slot and the word
// Uses several threads for large slots; the bits do not depend on how many.
void fill_contents(const Buffer&, std::int64_t slot, std::uint64_t seed, std::span<std::byte>);

// Contents that were made once: loading a step again copies them instead of computing them.
class ContentsCache {
 public:
  // What fill_contents writes. Valid as long as the cache.
  std::span<const std::byte> of(const Buffer&, std::int64_t slot, std::uint64_t seed);

 private:
  // Everything that the content depends on.
  using Key = std::tuple<Content, std::string, std::int64_t, DType, double,
                         std::vector<ContentPart>, std::string, std::int64_t, std::uint64_t>;
  std::map<Key, std::vector<std::byte>> made_;
};

}  // namespace stepgate
