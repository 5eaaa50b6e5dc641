// SPDX-License-Identifier: MIT
// The host side of cross_entropy and scaled_cross_entropy: operands, work and the reference.
// Meaning and shapes: cross_entropy.h.
#include "kernels/cross_entropy/cross_entropy.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "kernels/cuda_build.h"
#include "kernels/number_format.h"

namespace stepgate {
namespace {

// --- shape and scalars ---------------------------------------------------------------------------

constexpr KernelOperand cross_entropy_operands[] = {
    {"logits", Access::read},
    {"labels", Access::read},
    {"gradient", Access::write},
    {"row_losses", Access::write},
};

constexpr KernelOperand scaled_operands[] = {
    {"logits", Access::read},    {"labels", Access::read},      {"scale", Access::read},
    {"gradient", Access::write}, {"row_losses", Access::write},
};

// --- work ----------------------------------------------------------------------------------------

KernelWork cross_entropy_work(const KernelShape& shape, DType dtype, const KernelScalars&) {
  const std::int64_t elements = shape.rows * shape.columns;
  return {.bytes_read = elements * bytes_of(dtype) + shape.rows * 4,
          .bytes_written = elements * bytes_of(dtype) + shape.rows * 4,
          // maximum, subtract, exponential, sum, scale
          .flops = 5 * elements};
}

KernelWork scaled_work(const KernelShape& shape, DType dtype, const KernelScalars& scalars) {
  KernelWork scaled = cross_entropy_work(shape, dtype, scalars);
  scaled.bytes_read += 4;
  return scaled;
}

// --- reference -----------------------------------------------------------------------------------

void differentiate(const KernelCall& call, double scale, void* gradient, float* row_losses) {
  const std::int64_t rows = call.shape.rows;
  const std::int64_t columns = call.shape.columns;
  const auto* labels = static_cast<const std::int32_t*>(call.buffers[1]);
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
      set_number(gradient, call.dtype, row * columns + c,
                 scale * (probability - (c == label ? 1.0 : 0.0)) /
                     rows_of_mean(call.shape, call.scalars));
    }
  }
}

void cross_entropy_reference(const KernelCall& call) {
  differentiate(call, 1, call.buffers[2], static_cast<float*>(call.buffers[3]));
}

void scaled_reference(const KernelCall& call) {
  const float scale = *static_cast<const float*>(call.buffers[2]);
  differentiate(call, scale, call.buffers[3], static_cast<float*>(call.buffers[4]));
}

}  // namespace

// --- the rows ------------------------------------------------------------------------------------

Kernel cross_entropy_kernel() {
  return {"cross_entropy", cross_entropy_operands, cross_entropy_work, cross_entropy_reference,
          in_cuda_builds<prepare_cross_entropy>()};
}

Kernel scaled_cross_entropy_kernel() {
  return {"scaled_cross_entropy", scaled_operands, scaled_work, scaled_reference,
          in_cuda_builds<prepare_scaled_cross_entropy>()};
}

}  // namespace stepgate
