// SPDX-License-Identifier: MIT
// sums[c] = sum over parts of partials[p][c], or sums[c] += that: the second half of a sum over
// rows whose first half was taken by parts. The order of the sum depends on the shape alone.
//   shape     depth = parts; columns
//   operands  partials (fp32 [parts][columns]), sums ([columns]; read only when accumulating)
#pragma once

#include "kernels/kernel.h"

namespace stepgate {

namespace kernels {

struct SumParts {
  static constexpr std::string_view name = "sum_parts";
  struct Attributes {
    bool accumulate = false;
  };
};

}  // namespace kernels

std::vector<Kernel> sum_parts_kernels();

// Only in CUDA builds.
Launch prepare_sum_parts(const KernelShape&, DType, const KernelAttributes&, const LaunchContext&);

}  // namespace stepgate
