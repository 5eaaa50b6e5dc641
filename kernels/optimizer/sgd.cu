// SPDX-License-Identifier: MIT
// The CUDA side of sgd. Meaning and shapes: optimizer.h.
#include "kernels/launch.cuh"
#include "kernels/optimizer/optimizer.h"

namespace stepgate {
namespace {

template <class Number>
struct Descend {
  Number* weights;
  const Number* gradients;
  float learning_rate;

  template <int count>
  __device__ void apply(std::int64_t first) const {
    auto weight = load<count>(weights, first);
    const auto gradient = load<count>(gradients, first);
#pragma unroll
    for (int i = 0; i < count; ++i) {
      weight.values[i] = from_float<Number>(
          fmaf(-learning_rate, to_float(gradient.values[i]), to_float(weight.values[i])));
    }
    store<count>(weights, first, weight);
  }
};

}  // namespace

Launch prepare_sgd(const KernelShape& shape, DType dtype, const KernelAttributes& attributes,
                   const LaunchContext&) {
  const auto learning_rate = static_cast<float>(attributes.as<kernels::Sgd>().learning_rate);
  const std::int64_t parameters = shape.rows * shape.columns;
  return with_storage(dtype, [&](auto zero) -> Launch {
    using Number = decltype(zero);
    constexpr int count = access_bytes / sizeof(Number);
    return [parameters, learning_rate](void* const* buffers, cudaStream_t stream) {
      const Descend<Number> element{static_cast<Number*>(buffers[0]),
                                    static_cast<const Number*>(buffers[1]), learning_rate};
      launch_elementwise<count>("sgd", parameters, element,
                                aligned_to_access(element.weights, element.gradients), stream);
    };
  });
}

}  // namespace stepgate
