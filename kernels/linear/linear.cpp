// SPDX-License-Identifier: MIT
// The host side of linear: operands, work and the reference. Meaning and shapes: linear.h.
#include "kernels/linear/linear.h"

#include <vector>

#include "kernels/cuda_build.h"
#include "kernels/extents.h"
#include "kernels/number_format.h"

namespace stepgate {
namespace {

// --- operands ------------------------------------------------------------------------------------

constexpr KernelOperand linear_operands[] = {
    {"x", Access::read, extent::left_factors},
    {"weight", Access::read, extent::right_factors},
    {"bias", Access::read, extent::columns},
    {"y", Access::write, extent::elements},
};

// --- work ----------------------------------------------------------------------------------------

CheckedSize linear_flops(const CheckedShape& shape, const KernelAttributes&) {
  return 2 * elements_of(shape) * shape.depth + elements_of(shape);
}

// --- reference -----------------------------------------------------------------------------------

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

// --- the row -------------------------------------------------------------------------------------

std::vector<Kernel> linear_kernels() {
  return {{.name = kernels::Linear::name,
           .operands = linear_operands,
           .flops = linear_flops,
           .reference = linear_reference,
           .prepare = in_cuda_builds<prepare_linear>(),
           .uses_workspace = true,
           .is_gemm = true}};
}

}  // namespace stepgate
