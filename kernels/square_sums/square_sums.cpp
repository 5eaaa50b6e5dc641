// SPDX-License-Identifier: MIT
// The host side of square_sums: operands, work and the reference. Meaning and shapes:
// square_sums.h.
#include "kernels/square_sums/square_sums.h"

#include "kernels/cuda_build.h"
#include "kernels/extents.h"
#include "kernels/number_format.h"

namespace stepgate {
namespace {

// --- operands ------------------------------------------------------------------------------------

constexpr KernelOperand square_sums_operands[] = {
    {"gradients", Access::read, extent::columns},
    {"partials", Access::write, extent::depth, OperandFormat::single},
};

// --- work ----------------------------------------------------------------------------------------

CheckedSize square_sums_flops(const CheckedShape& shape, const KernelAttributes&) {
  return 2 * shape.columns;
}

// --- reference -----------------------------------------------------------------------------------

void square_sums_reference(const KernelCall& call) {
  const std::int64_t piece = square_sum_piece(call.shape);
  for (std::int64_t p = 0; p < call.shape.depth; ++p) {
    const std::int64_t end = std::min((p + 1) * piece, call.shape.columns);
    double sum = 0;
    for (std::int64_t i = p * piece; i < end; ++i) {
      const double number = number_at(call.buffers[0], call.dtype, i);
      sum += number * number;
    }
    static_cast<float*>(call.buffers[1])[p] = static_cast<float>(sum);
  }
}

}  // namespace

// --- the row -------------------------------------------------------------------------------------

std::vector<Kernel> square_sums_kernels() {
  return {{kernels::SquareSums::name, square_sums_operands, square_sums_flops,
           square_sums_reference, in_cuda_builds<prepare_square_sums>()}};
}

}  // namespace stepgate
