// SPDX-License-Identifier: MIT
// Follows a chain of lines: every load is of the line that the one before named, so that a launch
// takes the latency of memory as often as it is told, and nothing hides it.
//   shape     columns = lines of the chain, a power of two from 4 on
//   operands  chain (uint32 [lines, 32]: the first word of each line is the number of the next),
//             position (uint32 [1]: the line that is followed next), fraction (fp32 [1])
// position = the line after `accesses` more; fraction = position / lines. A launch goes on where
// the last one ended: of a footprint beyond the second-level cache it then never finds a line of an
// earlier launch there, however few of them one launch follows.
#pragma once

#include <cstdint>

#include "kernels/kernel.h"

namespace stepgate {

namespace kernels {

struct Chase {
  static constexpr std::string_view name = "chase";
  struct Attributes {
    std::int64_t accesses = 1;
  };
};

}  // namespace kernels

// Bytes that caches keep and memory fetches for one access (CUDA C++ Programming Guide: cache lines
// of 128 bytes), so that every access is of another line.
constexpr std::int64_t chase_line_bytes = 128;
constexpr std::int64_t chase_line_words = chase_line_bytes / 4;

// The line that follows in the chain of this seed. With a multiplier of 1 modulo 4 and an odd
// increment, modulo a power of two, it is one cycle through all lines (Hull and Dobell, Random
// Number Generators, 1962); the multiplier is that of Numerical Recipes.
constexpr std::uint32_t next_line(std::uint64_t line, std::int64_t lines, std::uint64_t seed) {
  constexpr std::uint64_t multiplier = 1664525;
  const std::uint64_t increment = (seed >> 32) | 1;
  const auto last = static_cast<std::uint64_t>(lines - 1);
  return static_cast<std::uint32_t>((multiplier * line + increment) & last);
}

std::vector<Kernel> chase_kernels();

// Only in CUDA builds.
Launch prepare_chase(const KernelShape&, DType, const KernelAttributes&, const LaunchContext&);

}  // namespace stepgate
