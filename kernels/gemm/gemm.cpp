// SPDX-License-Identifier: MIT
// Operands, work and references of the family on the host; the header has meaning and shapes.
#include "kernels/gemm/gemm.h"

#include <cstddef>
#include <vector>

#include "kernels/cuda_build.h"
#include "kernels/extents.h"
#include "kernels/number_format.h"

namespace stepgate {
namespace {

bool accumulates_gemm(const KernelAttributes& attributes) {
  return attributes.as<kernels::Matmul>().accumulate;
}

constexpr KernelOperand matmul_operands[] = {
    {"a", Access::read, extent::left_factors},
    {"b", Access::read, extent::right_factors},
    {.name = "c",
     .access = Access::read_write,
     .elements = extent::gemm_results,
     .accumulates = accumulates_gemm},
};

CheckedSize matmul_flops(const CheckedShape& shape, const KernelAttributes&) {
  return shape.groups * 2 * elements_of(shape) * shape.depth;
}

int spared_by_matmul(const KernelAttributes& attributes) {
  return attributes.as<kernels::Matmul>().spare_multiprocessors;
}

KernelAttributes matmul_that_spares(const KernelAttributes& attributes, int multiprocessors) {
  auto sparing = attributes.as<kernels::Matmul>();
  sparing.spare_multiprocessors = multiprocessors;
  return sparing;
}

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

void multiply(const KernelCall& call, const void* first, const void* second, void* c) {
  const auto [m, n, k, groups] = call.shape;
  const auto matmul = call.attributes.as<kernels::Matmul>();
  const auto a = dense(first, call.dtype, m, k, matmul.transpose_a);
  const auto b = dense(second, call.dtype, k, n, matmul.transpose_b);
  std::vector<double> sums(static_cast<std::size_t>(n));
  for (std::int64_t row = 0; row < m; ++row) {
    for (std::int64_t column = 0; column < n; ++column) {
      sums[column] = matmul.accumulate ? number_at(c, call.dtype, row * n + column) : 0.0;
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

void matmul_reference(const KernelCall& call) {
  const auto [m, n, k, groups] = call.shape;
  const auto matrix = [&](std::size_t operand, std::int64_t index, std::int64_t elements) {
    return static_cast<std::byte*>(call.buffers[operand]) + index * elements * bytes_of(call.dtype);
  };
  for (std::int64_t group = 0; group < groups; ++group) {
    multiply(call, matrix(0, group, m * k), matrix(1, group, k * n), matrix(2, group, m * n));
  }
}

constexpr KernelOperand linear_operands[] = {
    {"x", Access::read, extent::left_factors},
    {"weight", Access::read, extent::right_factors},
    {"bias", Access::read, extent::columns},
    {"y", Access::write, extent::elements},
};

CheckedSize linear_flops(const CheckedShape& shape, const KernelAttributes&) {
  return 2 * elements_of(shape) * shape.depth + elements_of(shape);
}

void linear_reference(const KernelCall& call) {
  const auto [m, n, k, unused] = call.shape;
  const std::vector<float> x = floats_of(call.buffers[0], call.dtype, m * k);
  const std::vector<float> weight = floats_of(call.buffers[1], call.dtype, n * k);
  for (std::int64_t row = 0; row < m; ++row) {
    for (std::int64_t column = 0; column < n; ++column) {
      double sum = number_at(call.buffers[2], call.dtype, column);
      for (std::int64_t i = 0; i < k; ++i) {
        sum += static_cast<double>(x[static_cast<std::size_t>(row * k + i)]) *
               weight[static_cast<std::size_t>(column * k + i)];
      }
      set_number(call.buffers[3], call.dtype, row * n + column, sum);
    }
  }
}

}  // namespace

std::vector<Kernel> gemm_kernels() {
  return {{.name = kernels::Matmul::name,
           .operands = matmul_operands,
           .flops = matmul_flops,
           .reference = matmul_reference,
           .prepare = in_cuda_builds<prepare_matmul>(),
           .uses_workspace = true,
           .is_gemm = true,
           .spare_multiprocessors = spared_by_matmul,
           .sparing = matmul_that_spares},
          {.name = kernels::Linear::name,
           .operands = linear_operands,
           .flops = linear_flops,
           .reference = linear_reference,
           .prepare = in_cuda_builds<prepare_linear>(),
           .uses_workspace = true,
           .is_gemm = true}};
}

}  // namespace stepgate
