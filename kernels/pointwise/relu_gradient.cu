// SPDX-License-Identifier: MIT
// The CUDA side of relu_gradient. Meaning and shapes: pointwise.h.
#include "kernels/launch.cuh"
#include "kernels/pointwise/pointwise.h"

namespace stepgate {
namespace {

// dx may be dy, so nothing is `__restrict__`: each thread loads its pack before it stores it.
template <class Number>
struct ReluGradient {
  const Number* y;
  const Number* dy;
  Number* dx;

  template <int count>
  __device__ void apply(std::int64_t first) const {
    const auto activation = load<count>(y, first);
    auto gradient = load<count>(dy, first);
#pragma unroll
    for (int i = 0; i < count; ++i) {
      if (!(to_float(activation.values[i]) > 0.0f)) gradient.values[i] = from_float<Number>(0.0f);
    }
    store<count>(dx, first, gradient);
  }
};

}  // namespace

Launch prepare_relu_gradient(const KernelShape& shape, DType dtype, const KernelAttributes&,
                             const LaunchContext&) {
  return with_storage(dtype, [&](auto zero) -> Launch {
    using Number = decltype(zero);
    constexpr int count = access_bytes / sizeof(Number);
    return [elements = shape.rows * shape.columns](void* const* buffers, cudaStream_t stream) {
      const ReluGradient<Number> element{static_cast<const Number*>(buffers[0]),
                                         static_cast<const Number*>(buffers[1]),
                                         static_cast<Number*>(buffers[2])};
      launch_elementwise<count>("relu_gradient", elements, element,
                                aligned_to_access(element.y, element.dy, element.dx), stream);
    };
  });
}

}  // namespace stepgate
