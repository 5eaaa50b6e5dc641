// SPDX-License-Identifier: MIT
// The CUDA side of adamw_clipped. Meaning and shapes: adamw_clipped.h.
#include "kernels/adamw/adamw_update.cuh"
#include "kernels/adamw_clipped/adamw_clipped.h"
#include "kernels/mixed_packs.cuh"
#include "kernels/update_control.h"

namespace stepgate {
namespace {

// --- kernels -------------------------------------------------------------------------------------

template <class Number>
struct AdaptClipped {
  Number* weights;
  const Number* gradients;
  float* m;
  float* v;
  const float* control;
  AdamwRates rates;

  template <int count>
  __device__ void apply(std::int64_t first) const {
    // Before the control is looked at: a skipped launch reads in vain, no other waits twice.
    const auto gradient = load<count>(gradients, first);
    auto weight = load<count>(weights, first);
    auto mean = load<count>(m, first);
    auto square = load<count>(v, first);
    const float factor = control[update_control::factor];
    const float updates = control[update_control::updates];
    if (factor == 0.0f) return;
    const AdamwCorrections corrections = adamw_corrections(rates, updates);
    adamw_steps(rates, corrections, factor, gradient, weight, mean, square);
    store<count>(m, first, mean);
    store<count>(v, first, square);
    store<count>(weights, first, weight);
  }
};

}  // namespace

// --- launcher ------------------------------------------------------------------------------------

Launch prepare_adamw_clipped(const KernelShape& shape, DType dtype,
                             const KernelAttributes& attributes, const LaunchContext&) {
  const AdamwRates rates = adamw_rates(attributes);
  const std::int64_t parameters = shape.rows * shape.columns;
  return with_storage(dtype, [&](auto zero) -> Launch {
    using Number = decltype(zero);
    return [parameters, rates](void* const* buffers, cudaStream_t stream) {
      const AdaptClipped<Number> element{
          static_cast<Number*>(buffers[0]),      static_cast<const Number*>(buffers[1]),
          static_cast<float*>(buffers[2]),       static_cast<float*>(buffers[3]),
          static_cast<const float*>(buffers[4]), rates};
      const bool aligned = all_aligned_to_packs<mixed_count>(element.weights, element.gradients,
                                                             element.m, element.v);
      launch_elementwise<mixed_count>("adamw_clipped", parameters, element, aligned, stream);
    };
  });
}

}  // namespace stepgate
