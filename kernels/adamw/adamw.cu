// SPDX-License-Identifier: MIT
// The CUDA side of adamw. Meaning and shapes: adamw.h.
#include "kernels/adamw/adamw_update.cuh"
#include "kernels/launch.cuh"

namespace stepgate {
namespace {

// --- kernels -------------------------------------------------------------------------------------

template <class Number>
struct Adapt {
  Number* weights;
  const Number* gradients;
  float* m;
  float* v;
  const std::uint64_t* counter;
  AdamwRates rates;

  template <int count>
  __device__ void apply(std::int64_t first) const {
    const AdamwCorrections corrections = adamw_corrections(rates, static_cast<float>(*counter));
    auto weight = load<count>(weights, first);
    const auto gradient = load<count>(gradients, first);
    auto mean = load<count>(m, first);
    auto square = load<count>(v, first);
    adamw_steps(rates, corrections, 1.0f, gradient, weight, mean, square);
    store<count>(m, first, mean);
    store<count>(v, first, square);
    store<count>(weights, first, weight);
  }
};

}  // namespace

// --- launcher ------------------------------------------------------------------------------------

Launch prepare_adamw(const KernelShape& shape, DType dtype, const KernelAttributes& attributes,
                     const LaunchContext&) {
  const AdamwRates rates = adamw_rates(attributes);
  const std::int64_t parameters = shape.rows * shape.columns;
  return with_storage(dtype, [&](auto zero) -> Launch {
    using Number = decltype(zero);
    constexpr int count = access_bytes / sizeof(Number);
    return [parameters, rates](void* const* buffers, cudaStream_t stream) {
      const Adapt<Number> element{static_cast<Number*>(buffers[0]),
                                  static_cast<const Number*>(buffers[1]),
                                  static_cast<float*>(buffers[2]),
                                  static_cast<float*>(buffers[3]),
                                  static_cast<const std::uint64_t*>(buffers[4]),
                                  rates};
      const bool aligned =
          aligned_to_access(element.weights, element.gradients, element.m, element.v);
      launch_elementwise<count>("adamw", parameters, element, aligned, stream);
    };
  });
}

}  // namespace stepgate
