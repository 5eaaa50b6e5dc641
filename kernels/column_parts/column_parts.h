// SPDX-License-Identifier: MIT
// partials[p][c] = sum of dy[r][c] over the rows r of part p, which are p, p + parts, ...: the
// first half of a bias's gradient, for matrices too tall and too narrow for bias_gradient to fill
// the device. sum_parts is the second.
//   shape     rows, columns; depth = parts (column_parts(rows, columns))
//   operands  dy, partials (fp32 [parts][columns])
#pragma once

#include "kernels/kernel.h"

namespace stepgate {

namespace kernels {

struct ColumnParts {
  static constexpr std::string_view name = "column_parts";
  using Attributes = NoAttributes;
};

}  // namespace kernels

// A block sums so many columns of a part.
constexpr std::int64_t columns_of_part = 256;

// Parts for which every one of the 132 multiprocessors of an H200 has eight blocks; a part has at
// least 32 rows, so that the partial sums stay small beside the rows.
constexpr std::int64_t column_parts(std::int64_t rows, std::int64_t columns) {
  constexpr std::int64_t blocks = 8 * 132, least_rows = 32;
  const std::int64_t most = blocks / ((columns + columns_of_part - 1) / columns_of_part);
  const std::int64_t parts = rows / least_rows < most ? rows / least_rows : most;
  return parts < 1 ? 1 : parts;
}

std::vector<Kernel> column_parts_kernels();

// Only in CUDA builds.
Launch prepare_column_parts(const KernelShape&, DType, const KernelAttributes&,
                            const LaunchContext&);

}  // namespace stepgate
