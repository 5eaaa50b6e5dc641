// SPDX-License-Identifier: MIT
// Kernels that load one resource of the device and compute nothing useful. Launchers exist only in
// CUDA builds.
#pragma once

#include <algorithm>
#include <cstdint>

#include "kernels/kernel.h"

namespace stepgate {

namespace kernels {

// Follows a chain of lines: each load depends on the line that the previous load returned. So a
// launch takes `accesses` times the latency of memory, and nothing hides the latency.
//   shape     lines of the chain, a power of two from 4 on
//   operands  chain (uint32 [lines, 32]: the first word of each line is the number of the next),
//             position (uint32 [1]: the next line to visit), fraction (fp32 [1])
// position moves `accesses` lines ahead; fraction = position / lines. A launch starts where the
// previous one ended. With a footprint larger than the L2 cache it never finds a line of an earlier
// launch there, however few lines one launch visits.
struct Chase {
  static constexpr std::string_view name = "chase";
  template <class Size>
  struct Sizes {
    static constexpr std::string_view names = "lines";
    Size lines = 1;
  };
  using Shape = Sizes<std::int64_t>;
  struct Attributes {
    static constexpr std::string_view names = "accesses";
    std::int64_t accesses = 1;
  };
  static Launch prepare(const Shape&, DType, const Attributes&, const LaunchContext&);
};

}  // namespace kernels

// Bytes that caches hold and memory fetches for one access (CUDA C++ Programming Guide: cache lines
// of 128 bytes), so that every access touches another line.
constexpr std::int64_t chase_line_bytes = 128;
constexpr std::int64_t chase_line_words = chase_line_bytes / 4;

// The next line in the chain of this seed. A linear congruence modulo a power of two, with a
// multiplier of 1 modulo 4 and an odd increment, gives one cycle of all lines (Hull and Dobell,
// Random Number Generators, 1962). The multiplier is from Numerical Recipes.
constexpr std::uint32_t next_line(std::uint64_t line, std::int64_t lines, std::uint64_t seed) {
  constexpr std::uint64_t multiplier = 1664525;
  const std::uint64_t increment = (seed >> 32) | 1;
  const auto last = static_cast<std::uint64_t>(lines - 1);
  return static_cast<std::uint32_t>((multiplier * line + increment) & last);
}

namespace kernels {

// Keeps one multiprocessor busy for a time by the device's clock, and counts that it did.
//   shape     unused
//   operands  word (uint32 [1]): word += 1, so that the loop is not optimised away
// The reference counts and does not spin.
struct Spin {
  static constexpr std::string_view name = "spin";
  using Shape = NoShape;
  struct Attributes {
    static constexpr std::string_view names = "microseconds";
    double microseconds = 0;
  };
  static Launch prepare(const Shape&, DType, const Attributes&, const LaunchContext&);
};

// Scales every element once, in an order and a layout that may waste most of the memory bandwidth:
// neighbouring threads access elements a stride apart, and elements may be one field of larger
// records. The useful traffic is always one read and one write per element.
//   shape     rows x columns elements; stride, which divides their number
//   operands  from, to: element e is at e * fields_from in `from` and at e * fields_to in `to`,
//             to[e] = factor * from[e]; the numbers between them stay unchanged
// `to` may be `from` where both have equally many fields. Place p of the order has element p % (n /
// stride) * stride + p / (n / stride), with n elements in total. A warp's request covers 32 places.
struct StridedScale {
  static constexpr std::string_view name = "strided_scale";
  template <class Size>
  struct Sizes {
    static constexpr std::string_view names = "rows columns stride";
    Size rows = 1;
    Size columns = 1;
    Size stride = 1;
  };
  using Shape = Sizes<std::int64_t>;
  struct Attributes {
    static constexpr std::string_view names = "factor fields_from fields_to";
    double factor = 1;
    std::int64_t fields_from = 1;  // numbers of a record of `from`
    std::int64_t fields_to = 1;    // numbers of a record of `to`
  };
  static Launch prepare(const Shape&, DType, const Attributes&, const LaunchContext&);
};

}  // namespace kernels

// Memory moves in sectors of 32 bytes (CUDA C++ Best Practices Guide, coalesced access).
constexpr std::int64_t sector_bytes = 32;
constexpr std::int64_t warp_threads = 32;

// Number of sectors that one load or store of a warp touches, if the first element starts a sector:
// 4 for neighbours of 4 bytes, 24 for a 4-byte field of records of 24 bytes, 32 from a stride of 8
// on.
constexpr std::int64_t sectors_per_request(std::int64_t distance_bytes, std::int64_t number_bytes) {
  const std::int64_t reach = (warp_threads - 1) * distance_bytes + number_bytes;
  return std::min(warp_threads, (reach + sector_bytes - 1) / sector_bytes);
}

// Numbers of sectors of the loads from `from` and of the stores to `to`.
struct StridedSectors {
  std::int64_t read = 0;
  std::int64_t written = 0;
};

StridedSectors strided_scale_sectors(const kernels::StridedScale::Shape&, DType,
                                     const kernels::StridedScale::Attributes&);

// Bytes of the sectors that all requests touch, where no cache keeps a sector until the next
// request for it.
KernelWork strided_scale_traffic(const kernels::StridedScale::Shape&, DType,
                                 const kernels::StridedScale::Attributes&);

std::vector<Kernel> probes_kernels();

}  // namespace stepgate
