// SPDX-License-Identifier: MIT
// The host side of matmul: operands, work and the reference. Meaning and shapes: matmul.h.
#include "kernels/matmul/matmul.h"

#include <vector>

#include "kernels/cuda_build.h"
#include "kernels/number_format.h"

namespace stepgate {
namespace {

// --- shape and scalars ---------------------------------------------------------------------------

constexpr KernelOperand operands[] = {
    {"a", Access::read},
    {"b", Access::read},
    {"c", Access::read_write, matmul_scalar::accumulate},
};

bool is_set(const KernelScalars& scalars, std::size_t index) {
  return scalars[index] != 0;
}

// --- work ----------------------------------------------------------------------------------------

KernelWork work(const KernelShape& shape, DType dtype, const KernelScalars& scalars) {
  const auto [m, n, k] = shape;
  const std::int64_t inputs =
      m * k + k * n + (is_set(scalars, matmul_scalar::accumulate) ? m * n : 0);
  return {.bytes_read = inputs * bytes_of(dtype),
          .bytes_written = m * n * bytes_of(dtype),
          .flops = 2 * m * n * k};
}

// --- reference -----------------------------------------------------------------------------------

// The operand as floats, [rows][columns] after the transposition that was asked for.
std::vector<float> dense(const void* numbers, DType dtype, std::int64_t rows, std::int64_t columns,
                         bool transposed) {
  std::vector<float> stored = floats_of(numbers, dtype, rows * columns);
  if (!transposed) return stored;
  std::vector<float> turned(stored.size());
  for (std::int64_t r = 0; r < rows; ++r) {
    for (std::int64_t c = 0; c < columns; ++c) turned[r * columns + c] = stored[c * rows + r];
  }
  return turned;
}

void reference(const KernelCall& call) {
  const auto [m, n, k] = call.shape;
  const auto a =
      dense(call.buffers[0], call.dtype, m, k, is_set(call.scalars, matmul_scalar::transpose_a));
  const auto b =
      dense(call.buffers[1], call.dtype, k, n, is_set(call.scalars, matmul_scalar::transpose_b));
  const bool accumulate = is_set(call.scalars, matmul_scalar::accumulate);
  void* c = call.buffers[2];
  std::vector<double> sums(static_cast<std::size_t>(n));
  for (std::int64_t row = 0; row < m; ++row) {
    for (std::int64_t column = 0; column < n; ++column) {
      sums[column] = accumulate ? number_at(c, call.dtype, row * n + column) : 0.0;
    }
    // k outside, columns inside: both b and the sums are walked in memory order.
    for (std::int64_t inner = 0; inner < k; ++inner) {
      const double factor = a[row * k + inner];
      const float* b_row = b.data() + inner * n;
      for (std::int64_t column = 0; column < n; ++column) sums[column] += factor * b_row[column];
    }
    for (std::int64_t column = 0; column < n; ++column) {
      set_number(c, call.dtype, row * n + column, sums[column]);
    }
  }
}

}  // namespace

// --- the row -------------------------------------------------------------------------------------

Kernel matmul_kernel() {
  return {"matmul", operands, work, reference, in_cuda_builds<prepare_matmul>(), true};
}

}  // namespace stepgate
