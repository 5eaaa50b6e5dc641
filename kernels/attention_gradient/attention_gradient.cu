// SPDX-License-Identifier: MIT
// The CUDA side of attention_gradient: which kernels a launch takes. Meaning and shapes:
// attention_gradient.h.
#include "kernels/attention_gradient/attention_gradient.h"

#include "kernels/attention_gradient/plain_gradient.cuh"
#include "kernels/launch.cuh"

namespace stepgate {
namespace {

// --- launcher ------------------------------------------------------------------------------------

template <class Number>
GradientOperands<Number> operands_of(void* const* buffers) {
  return {static_cast<const Number*>(buffers[0]), static_cast<const Number*>(buffers[2]),
          static_cast<const float*>(buffers[3]), static_cast<const float*>(buffers[4]),
          static_cast<Number*>(buffers[5])};
}

template <int count, int lanes, class Number>
void launch_row_dots(const KernelShape& shape, void* const* buffers, cudaStream_t stream) {
  const std::int64_t threads = shape.rows * shape.groups * lanes;
  row_dots<count, lanes><<<static_cast<unsigned>(ceiling_quotient(threads, 256)), 256, 0, stream>>>(
      PackedShape(shape), static_cast<const Number*>(buffers[1]),
      static_cast<const Number*>(buffers[2]), static_cast<float*>(buffers[4]));
  check_launch("attention_gradient");
}

template <class Number>
Launch plain(const KernelShape& shape) {
  const std::int64_t rows = shape.rows * shape.groups;
  const auto blocks = static_cast<unsigned>(ceiling_quotient(rows, row_warps));
  return [shape, blocks](void* const* buffers, cudaStream_t stream) {
    const PackedShape sizes(shape);
    const auto operands = operands_of<Number>(buffers);
    launch_row_dots<1, 32, Number>(shape, buffers, stream);
    plain_query_gradient<<<blocks, 32 * row_warps, 0, stream>>>(sizes, operands);
    check_launch("attention_gradient");
    plain_key_gradient<<<blocks, 32 * row_warps, 0, stream>>>(sizes, operands);
    check_launch("attention_gradient");
  };
}

}  // namespace

Launch prepare_attention_gradient(const KernelShape& shape, DType dtype, const KernelScalars&,
                                  const LaunchContext&) {
  if (shape.columns / shape.groups > widest_head) {
    throw std::runtime_error("attention_gradient: a head has at most " +
                             std::to_string(widest_head) + " numbers");
  }
  return with_storage(dtype, [&](auto zero) { return plain<decltype(zero)>(shape); });
}

}  // namespace stepgate
