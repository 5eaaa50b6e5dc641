// SPDX-License-Identifier: MIT
// Contents of buffers before the first step. Devices that hold real numbers share it, so that they
// all start from the same bits; a GPU makes them itself (cuda/fill_on_device.h).
//   zeros    zero bytes
//   weights  uniform in [-scale, scale), stored in the buffer's dtype; depends on the seed, the
//            buffer's name and the element, but on no other part of the plan
//   chain    every 128 bytes name those that are next, in one cycle through all of the slot
//            (kernels/probes/probes.h); depends on the seed; its other words are zero
//   payload  fp32 uniform in [-1, 1); depends on the seed, the slot and the word
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include "base/random.h"
#include "plan/step_plan.h"

namespace stepgate {

// Adjacent elements of a slot with the same distribution: uniform in [centre - scale, centre +
// scale).
struct DrawnStretch {
  std::int64_t first = 0;  // place in the slot, in elements
  std::int64_t elements = 0;
  double centre = 0;
  double scale = 0;
  std::int64_t shift = 0;  // the number drawn for a place is that of the place so far on
};

// The content of one slot as numbers of this type; elements outside the stretches are zero.
struct DrawnContent {
  std::uint64_t seed = 0;
  DType dtype = DType::fp32;
  std::vector<DrawnStretch> stretches;
  std::int64_t chained_lines = 0;  // of a chain, which has no stretches
};

DrawnContent drawn_content(const Buffer&, std::int64_t slot, std::uint64_t seed);

// Exact: the upper 24 bits as a fixed-point number in [-1, 1).
constexpr float uniform_signed(std::uint64_t seed, std::uint64_t index) {
  const auto bits = static_cast<std::int32_t>(random_bits(seed, index) >> 40);
  return static_cast<float>(bits - (1 << 23)) * 0x1.0p-23f;
}

// The element at this place of a slot, before it is rounded to the slot's type; `seed` is that of
// the content. The product is rounded, then the sum: code that calls this is compiled without
// fused multiply-adds, which round once and give other bits.
constexpr double drawn_number(std::uint64_t seed, const DrawnStretch& stretch, std::int64_t place) {
  return stretch.centre +
         stretch.scale * uniform_signed(seed, static_cast<std::uint64_t>(place + stretch.shift));
}

// Writes the initial content of one slot. Uses several threads for large slots; the bits do not
// depend on how many.
void fill_contents(const Buffer&, std::int64_t slot, std::uint64_t seed, std::span<std::byte>);

// Keeps contents, so that loading a step again copies them instead of computing them.
class ContentsCache {
 public:
  // The bytes that fill_contents writes. Valid as long as the cache.
  std::span<const std::byte> of(const Buffer&, std::int64_t slot, std::uint64_t seed);

 private:
  // All values that the content depends on.
  using Key =
      std::tuple<Content, std::string, std::int64_t, DType, double, std::vector<ContentPart>,
                 std::string, std::vector<RankPiece>, std::int64_t, std::int64_t, std::uint64_t>;
  std::map<Key, std::vector<std::byte>> made_;
};

}  // namespace stepgate
