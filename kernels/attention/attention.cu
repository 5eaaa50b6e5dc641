// SPDX-License-Identifier: MIT
// The CUDA side of attention: which kernel a launch takes. Meaning and shapes: attention.h.
#include "kernels/attention/attention.h"

#include "kernels/attention/plain_attention.cuh"
#include "kernels/launch.cuh"

namespace stepgate {
namespace {

// --- launcher ------------------------------------------------------------------------------------

template <class Number>
Launch plain(const KernelShape& shape) {
  const std::int64_t rows = shape.rows * shape.groups;
  const auto blocks = static_cast<unsigned>(ceiling_quotient(rows, row_warps));
  return [sizes = PackedShape(shape), blocks](void* const* buffers, cudaStream_t stream) {
    plain_attention<<<blocks, 32 * row_warps, 0, stream>>>(
        sizes, static_cast<const Number*>(buffers[0]), static_cast<Number*>(buffers[1]),
        static_cast<float*>(buffers[2]));
    check_launch("attention");
  };
}

}  // namespace

Launch prepare_attention(const KernelShape& shape, DType dtype, const KernelScalars&,
                         const LaunchContext&) {
  if (shape.columns / shape.groups > widest_head) {
    throw std::runtime_error("attention: a head has at most " + std::to_string(widest_head) +
                             " numbers");
  }
  return with_storage(dtype, [&](auto zero) { return plain<decltype(zero)>(shape); });
}

}  // namespace stepgate
