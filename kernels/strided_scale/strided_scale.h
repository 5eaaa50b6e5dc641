// SPDX-License-Identifier: MIT
// Scales every element once, in an order and over a layout that may waste most of what memory
// delivers: neighbouring threads take elements a stride apart, and elements may be one field of
// larger records. What is useful stays the same, each element read once and written once.
//   shape     rows x columns elements; depth is the stride, which divides their number
//   operands  from, to: element e is number e * fields_from of the one and e * fields_to of the
//             other, to[e] = factor * from[e]; the numbers between are left alone
// `to` may be `from` where both have as many fields. Of n elements, the one in place p of the order
// is p % (n / stride) * stride + p / (n / stride), and 32 places are a warp's request.
#pragma once

#include <algorithm>
#include "kernels/kernel.h"

namespace stepgate {

namespace kernels {

struct StridedScale {
  static constexpr std::string_view name = "strided_scale";
  struct Attributes {
    double factor = 1;
    std::int64_t fields_from = 1;  // numbers of a record of `from`
    std::int64_t fields_to = 1;    // likewise
  };
};

}  // namespace kernels

// Memory moves in sectors of 32 bytes (CUDA C++ Best Practices Guide, coalesced access).
constexpr std::int64_t sector_bytes = 32;
constexpr std::int64_t warp_threads = 32;

// Sectors that one load or store of a warp touches, the first at the start of a sector: 4 for
// neighbours of 4 bytes, 24 for one such field of records of 24 bytes, 32 from a stride of 8 on.
constexpr std::int64_t sectors_per_request(std::int64_t distance_bytes, std::int64_t number_bytes) {
  const std::int64_t reach = (warp_threads - 1) * distance_bytes + number_bytes;
  return std::min(warp_threads, (reach + sector_bytes - 1) / sector_bytes);
}

// Sectors of the loads from `from` and of the stores to `to`.
struct StridedSectors {
  std::int64_t read = 0;
  std::int64_t written = 0;
};

StridedSectors strided_scale_sectors(const KernelShape&, DType, const KernelAttributes&);

// Bytes of the sectors that all requests touch, where no cache keeps a sector until the next
// request for it.
KernelWork strided_scale_traffic(const KernelShape&, DType, const KernelAttributes&);

std::vector<Kernel> strided_scale_kernels();

// Only in CUDA builds.
Launch prepare_strided_scale(const KernelShape&, DType, const KernelAttributes&,
                             const LaunchContext&);

}  // namespace stepgate
