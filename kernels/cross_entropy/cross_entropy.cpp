// SPDX-License-Identifier: MIT
// The host side of cross_entropy: operands, work and the reference. Meaning and shapes:
// cross_entropy.h.
#include "kernels/cross_entropy/cross_entropy.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "kernels/cuda_build.h"
#include "kernels/number_format.h"

namespace stepgate {
namespace {

// --- shape and scalars ---------------------------------------------------------------------------

constexpr KernelOperand operands[] = {
    {"logits", Access::read},
    {"labels", Access::read},
    {"gradient", Access::write},
    {"row_losses", Access::write},
};

// --- work ----------------------------------------------------------------------------------------

KernelWork work(const KernelShape& shape, DType dtype, const KernelScalars&) {
  const std::int64_t elements = shape.rows * shape.columns;
  return {.bytes_read = elements * bytes_of(dtype) + shape.rows * 4,
          .bytes_written = elements * bytes_of(dtype) + shape.rows * 4,
          // maximum, subtract, exponential, sum, scale
          .flops = 5 * elements};
}

// --- reference -----------------------------------------------------------------------------------

void reference(const KernelCall& call) {
  const std::int64_t rows = call.shape.rows;
  const std::int64_t columns = call.shape.columns;
  const auto* labels = static_cast<const std::int32_t*>(call.buffers[1]);
  auto* row_losses = static_cast<float*>(call.buffers[3]);
  for (std::int64_t row = 0; row < rows; ++row) {
    // A copy, since the gradient may be written over the logits.
    std::vector<double> logits(static_cast<std::size_t>(columns));
    for (std::int64_t c = 0; c < columns; ++c) {
      logits[c] = number_at(call.buffers[0], call.dtype, row * columns + c);
    }
    const double largest = *std::max_element(logits.begin(), logits.end());
    double sum = 0;
    for (const double logit : logits) sum += std::exp(logit - largest);
    const std::int64_t label = labels[row];
    row_losses[row] = static_cast<float>(std::log(sum) + largest - logits[label]);
    for (std::int64_t c = 0; c < columns; ++c) {
      const double probability = std::exp(logits[c] - largest) / sum;
      set_number(call.buffers[2], call.dtype, row * columns + c,
                 (probability - (c == label ? 1.0 : 0.0)) / static_cast<double>(rows));
    }
  }
}

}  // namespace

// --- the row -------------------------------------------------------------------------------------

Kernel cross_entropy_kernel() {
  return {"cross_entropy", operands, work, reference, in_cuda_builds<prepare_cross_entropy>()};
}

}  // namespace stepgate
