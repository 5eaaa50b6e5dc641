// SPDX-License-Identifier: MIT
// Operands, work and host references of the GEMMs; gemm.h has their meaning and shapes.
#include "kernels/gemm/gemm.h"

#include <cstddef>
#include <vector>

#include "kernels/extents.h"
#include "kernels/fp8/fp8_numbers.h"
#include "kernels/number_format.h"
#include "kernels/pointwise/pointwise.h"

namespace stepgate {
namespace {

// The numbers of elements of the factors and the result.
constexpr auto left_factors = [](const auto& s) { return s.groups * s.rows * s.depth; };
constexpr auto right_factors = [](const auto& s) { return s.groups * s.depth * s.columns; };
constexpr auto results = [](const auto& s) { return s.groups * s.rows * s.columns; };

constexpr auto matmul_operands = operands_of<kernels::Matmul>({
    {"a", Access::read, left_factors},
    {"b", Access::read, right_factors},
    {.name = "c", .access = Access::read_write, .elements = results, .accumulates = accumulates},
});

template <class Kernel>
constexpr LaunchFunction<Kernel, GemmSizes> gemm_sizes =
    [](const kernels::Matmul::Shape& s, const auto&) {
      return GemmSizes{s.rows, s.columns, s.depth, s.groups};
    };

// The use of cuBLASLt by a GEMM that may leave multiprocessors to others.
template <class Kernel>
constexpr KernelLibrary sparing_gemm{
    .uses_workspace = true,
    .gemm = gemm_sizes<Kernel>,
    .spare_multiprocessors = AttributesFunction<Kernel, int>(
        [](const auto& told) { return told.spare_multiprocessors; }),
    .sparing = [](const KernelAttributes& attributes, int multiprocessors) {
      auto sparing = attributes.as<Kernel>();
      sparing.spare_multiprocessors = multiprocessors;
      return KernelAttributes(sparing);
    }};

// The operand as doubles, [rows][columns], after the transposition if `transposed`.
std::vector<double> dense(const void* numbers, DType dtype, std::int64_t rows, std::int64_t columns,
                          bool transposed) {
  std::vector<double> stored = doubles_of(numbers, dtype, rows * columns);
  if (!transposed) return stored;
  std::vector<double> turned(stored.size());
  for (std::int64_t r = 0; r < rows; ++r) {
    for (std::int64_t c = 0; c < columns; ++c) turned[r * columns + c] = stored[c * rows + r];
  }
  return turned;
}

void multiply(const CallOf<kernels::Matmul>& call, const void* first, const void* second, void* c) {
  const auto [m, n, k, groups] = call.shape;
  const auto& matmul = call.attributes;
  const auto a = dense(first, call.dtype, m, k, matmul.transpose_a);
  const auto b = dense(second, call.dtype, k, n, matmul.transpose_b);
  std::vector<double> sums(static_cast<std::size_t>(n));
  for (std::int64_t row = 0; row < m; ++row) {
    for (std::int64_t column = 0; column < n; ++column) {
      sums[column] = matmul.accumulate ? number_at(c, call.dtype, row * n + column) : 0.0;
    }
    // With k in the outer loop, both b and the sums are read in memory order.
    for (std::int64_t inner = 0; inner < k; ++inner) {
      const double factor = a[row * k + inner];
      const double* b_row = b.data() + inner * n;
      for (std::int64_t column = 0; column < n; ++column) sums[column] += factor * b_row[column];
    }
    for (std::int64_t column = 0; column < n; ++column) {
      set_number(c, call.dtype, row * n + column, sums[column]);
    }
  }
}

void matmul_reference(const CallOf<kernels::Matmul>& call) {
  const auto [m, n, k, groups] = call.shape;
  const auto matrix = [&](std::size_t operand, std::int64_t index, std::int64_t elements) {
    return static_cast<std::byte*>(call.buffers[operand]) + index * elements * bytes_of(call.dtype);
  };
  for (std::int64_t group = 0; group < groups; ++group) {
    multiply(call, matrix(0, group, m * k), matrix(1, group, k * n), matrix(2, group, m * n));
  }
}

constexpr auto linear_operands = operands_of<kernels::Linear>({
    {"x", Access::read, left_factors},
    {"weight", Access::read, right_factors},
    {"bias", Access::read, extent::columns},
    {"y", Access::write, extent::elements},
});

// Calls take(index in y, sum) with the sums of x W^T + bias in double.
template <class Take>
void sum_linear(const auto& call, Take take) {
  const auto [m, n, k, unused] = call.shape;
  const std::vector<double> x = doubles_of(call.buffers[0], call.dtype, m * k);
  const std::vector<double> weight = doubles_of(call.buffers[1], call.dtype, n * k);
  for (std::int64_t row = 0; row < m; ++row) {
    for (std::int64_t column = 0; column < n; ++column) {
      double sum = number_at(call.buffers[2], call.dtype, column);
      for (std::int64_t i = 0; i < k; ++i) {
        sum += x[static_cast<std::size_t>(row * k + i)] *
               weight[static_cast<std::size_t>(column * k + i)];
      }
      take(row * n + column, sum);
    }
  }
}

void linear_reference(const CallOf<kernels::Linear>& call) {
  sum_linear(call,
             [&](std::int64_t i, double sum) { set_number(call.buffers[3], call.dtype, i, sum); });
}

constexpr auto linear_gelu_operands = operands_of<kernels::LinearGelu>({
    {"x", Access::read, left_factors},
    {"weight", Access::read, right_factors},
    {"bias", Access::read, extent::columns},
    {"up", Access::write, extent::elements},
    {"y", Access::write, extent::elements},
});

void linear_gelu_reference(const CallOf<kernels::LinearGelu>& call) {
  sum_linear(call, [&](std::int64_t i, double sum) {
    set_number(call.buffers[3], call.dtype, i, sum);
    set_number(call.buffers[4], call.dtype, i, gelu(sum));
  });
}

constexpr auto matmul_gelu_gradient_operands = operands_of<kernels::MatmulGeluGradient>({
    {"dy", Access::read, left_factors},
    {"weight", Access::read, right_factors},
    {"up", Access::read, extent::elements},
    {"dup", Access::write, extent::elements},
});

void matmul_gelu_gradient_reference(const CallOf<kernels::MatmulGeluGradient>& call) {
  const auto [m, n, k, unused] = call.shape;
  const std::vector<double> d_y = doubles_of(call.buffers[0], call.dtype, m * k);
  const std::vector<double> weight = doubles_of(call.buffers[1], call.dtype, k * n);
  std::vector<double> sums(static_cast<std::size_t>(n));
  for (std::int64_t row = 0; row < m; ++row) {
    sums.assign(sums.size(), 0.0);
    for (std::int64_t inner = 0; inner < k; ++inner) {
      for (std::int64_t column = 0; column < n; ++column)
        sums[column] += d_y[row * k + inner] * weight[inner * n + column];
    }
    for (std::int64_t column = 0; column < n; ++column) {
      const std::int64_t i = row * n + column;
      const double slope = gelu_slope_at(number_at(call.buffers[2], call.dtype, i));
      set_number(call.buffers[3], call.dtype, i, sums[column] * slope);
    }
  }
}

constexpr auto matmul_fp8_operands = operands_of<kernels::MatmulFp8>({
    {"a", Access::read, left_factors, OperandFormat::byte},
    {"b", Access::read, right_factors, OperandFormat::byte},
    {"a_inverse_scale", Access::read, extent::one, OperandFormat::single},
    {"b_inverse_scale", Access::read, extent::one, OperandFormat::single},
    {.name = "c", .access = Access::read_write, .elements = results, .accumulates = accumulates},
});

constexpr auto linear_fp8_operands = operands_of<kernels::LinearFp8>({
    {"x", Access::read, left_factors, OperandFormat::byte},
    {"weight", Access::read, right_factors, OperandFormat::byte},
    {"x_inverse_scale", Access::read, extent::one, OperandFormat::single},
    {"weight_inverse_scale", Access::read, extent::one, OperandFormat::single},
    {"bias", Access::read, extent::columns},
    {"y", Access::write, extent::elements},
});

std::vector<double> doubles_of_fp8(const void* bytes, const Fp8Format& format, std::int64_t count) {
  std::vector<double> values;
  values.reserve(static_cast<std::size_t>(count));
  for (std::int64_t i = 0; i < count; ++i)
    values.push_back(float_from_fp8(format, static_cast<const std::uint8_t*>(bytes)[i]));
  return values;
}

// Calls take(index in the result, sum) with the sums of s a b^T in double.
template <class Take>
void sum_fp8(const auto& call, const Fp8Format& format_of_a, Take take) {
  const auto [m, n, k, unused] = call.shape;
  const std::vector<double> a = doubles_of_fp8(call.buffers[0], format_of_a, m * k);
  const std::vector<double> b = doubles_of_fp8(call.buffers[1], e4m3, n * k);
  const double scale =
      number_at(call.buffers[2], DType::fp32, 0) * number_at(call.buffers[3], DType::fp32, 0);
  for (std::int64_t row = 0; row < m; ++row) {
    for (std::int64_t column = 0; column < n; ++column) {
      double sum = 0;
      for (std::int64_t i = 0; i < k; ++i) sum += a[row * k + i] * b[column * k + i];
      take(row * n + column, scale * sum);
    }
  }
}

void matmul_fp8_reference(const CallOf<kernels::MatmulFp8>& call) {
  void* const c = call.buffers[4];
  sum_fp8(call, call.attributes.gradient ? e5m2 : e4m3, [&](std::int64_t i, double sum) {
    const double before = call.attributes.accumulate ? number_at(c, call.dtype, i) : 0;
    set_number(c, call.dtype, i, before + sum);
  });
}

void linear_fp8_reference(const CallOf<kernels::LinearFp8>& call) {
  const std::int64_t n = call.shape.columns;
  sum_fp8(call, e4m3, [&](std::int64_t i, double sum) {
    set_number(call.buffers[5], call.dtype, i, sum + number_at(call.buffers[4], call.dtype, i % n));
  });
}

// Each result is a sum of products, and has one more operation and those of gelu or of its slope.
constexpr auto gelu_gemm_flops = [](const auto& shape) {
  return elements_of(shape) * (2 * shape.depth + 1 + gelu_operations);
};

constexpr auto linear_flops = [](const auto& shape) {
  return elements_of(shape) * (2 * shape.depth + 1);
};

// The 101 GEMMs of a ResNet-50's step and the 177 of a UNet's took an H200 0.9 to 1.1 times as long
// as this share says, with the pauses before them.
constexpr double gemm_share = 0.95;

}  // namespace

std::vector<Kernel> gemm_kernels() {
  return {row<kernels::Matmul, matmul_reference>(
              matmul_operands,
              [](const auto& shape) { return shape.groups * 2 * elements_of(shape) * shape.depth; },
              sparing_gemm<kernels::Matmul>, {.share_of_rate = gemm_share}),
          row<kernels::Linear, linear_reference>(
              linear_operands, linear_flops,
              {.uses_workspace = true, .gemm = gemm_sizes<kernels::Linear>},
              {.share_of_rate = gemm_share}),
          row<kernels::MatmulFp8, matmul_fp8_reference>(
              matmul_fp8_operands,
              [](const auto& shape) { return 2 * elements_of(shape) * shape.depth; },
              sparing_gemm<kernels::MatmulFp8>, {.share_of_rate = gemm_share}),
          row<kernels::LinearFp8, linear_fp8_reference>(
              linear_fp8_operands, linear_flops,
              {.uses_workspace = true, .gemm = gemm_sizes<kernels::LinearFp8>},
              {.share_of_rate = gemm_share}),
          row<kernels::LinearGelu, linear_gelu_reference>(
              linear_gelu_operands, gelu_gemm_flops,
              {.uses_workspace = true, .gemm = gemm_sizes<kernels::LinearGelu>},
              {.share_of_rate = gemm_share}),
          row<kernels::MatmulGeluGradient, matmul_gelu_gradient_reference>(
              matmul_gelu_gradient_operands, gelu_gemm_flops,
              {.uses_workspace = true, .gemm = gemm_sizes<kernels::MatmulGeluGradient>},
              {.share_of_rate = gemm_share})};
}

}  // namespace stepgate
