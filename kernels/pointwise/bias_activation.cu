// SPDX-License-Identifier: MIT
// The CUDA side of bias_activation. Meaning and shapes: pointwise.h.
#include "kernels/launch.cuh"
#include "kernels/pointwise/pointwise.h"

namespace stepgate {
namespace {

// The matrix is walked as one flat array, so that rows of any length keep 16-byte accesses; a pack
// may therefore span two rows. y may be x.
template <class Number>
struct BiasActivation {
  const Number* x;
  const Number* bias;
  Number* y;
  std::int64_t columns;
  bool relu;
  bool bias_moves_in_packs;  // aligned, and no pack spans two rows

  template <int count>
  __device__ void apply(std::int64_t first) const {
    auto pack = load<count>(x, first);
    std::int64_t column = first % columns;
    const auto biases = bias_of<count>(column);
#pragma unroll
    for (int i = 0; i < count; ++i) {
      const float sum = to_float(pack.values[i]) + to_float(biases.values[i]);
      pack.values[i] = from_float<Number>(relu && sum < 0.0f ? 0.0f : sum);
    }
    store<count>(y, first, pack);
  }

  template <int count>
  __device__ Pack<Number, count> bias_of(std::int64_t column) const {
    if (bias_moves_in_packs) return load<count>(bias, column);
    Pack<Number, count> biases;
#pragma unroll
    for (int i = 0; i < count; ++i) {
      biases.values[i] = bias[column];
      if (++column == columns) column = 0;
    }
    return biases;
  }
};

}  // namespace

Launch prepare_bias_activation(const KernelShape& shape, DType dtype,
                               const KernelAttributes& attributes, const LaunchContext&) {
  const bool relu = attributes.as<kernels::BiasActivation>().relu;
  return with_storage(dtype, [&](auto zero) -> Launch {
    using Number = decltype(zero);
    constexpr int count = access_bytes / sizeof(Number);
    return [shape, relu](void* const* buffers, cudaStream_t stream) {
      BiasActivation<Number> element{static_cast<const Number*>(buffers[0]),
                                     static_cast<const Number*>(buffers[1]),
                                     static_cast<Number*>(buffers[2]),
                                     shape.columns,
                                     relu,
                                     false};
      element.bias_moves_in_packs = shape.columns % count == 0 && aligned_to_access(element.bias);
      launch_elementwise<count>("bias_activation", shape.rows * shape.columns, element,
                                aligned_to_access(element.x, element.y), stream);
    };
  });
}

}  // namespace stepgate
