// SPDX-License-Identifier: MIT
// The CUDA side of adamw. Meaning and shapes: adamw.h.
#include <cmath>

#include "kernels/adamw/adamw.h"
#include "kernels/launch.cuh"

namespace stepgate {
namespace {

// --- kernels -------------------------------------------------------------------------------------

struct AdamwRates {
  float learning_rate;
  float one_minus_beta1;
  float beta1;
  float one_minus_beta2;
  float beta2;
  float log_beta1;
  float log_beta2;
  float epsilon;
  float weight_decay;
};

AdamwRates rates_of(const KernelScalars& scalars) {
  namespace scalar = adamw_scalar;
  const double beta1 = scalars[scalar::beta1];
  const double beta2 = scalars[scalar::beta2];
  return {.learning_rate = static_cast<float>(scalars[scalar::learning_rate]),
          .one_minus_beta1 = static_cast<float>(1 - beta1),
          .beta1 = static_cast<float>(beta1),
          .one_minus_beta2 = static_cast<float>(1 - beta2),
          .beta2 = static_cast<float>(beta2),
          .log_beta1 = static_cast<float>(std::log(beta1)),
          .log_beta2 = static_cast<float>(std::log(beta2)),
          .epsilon = static_cast<float>(scalars[scalar::epsilon]),
          .weight_decay = static_cast<float>(scalars[scalar::weight_decay])};
}

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
    const auto step = static_cast<float>(*counter);
    // 1 - beta^t without the cancellation that beta near 1 and small t would bring.
    const float m_correction = -expm1f(step * rates.log_beta1);
    const float v_correction = -expm1f(step * rates.log_beta2);
    auto weight = load<count>(weights, first);
    const auto gradient = load<count>(gradients, first);
    auto mean = load<count>(m, first);
    auto square = load<count>(v, first);
#pragma unroll
    for (int i = 0; i < count; ++i) {
      const float g = to_float(gradient.values[i]);
      const float w = to_float(weight.values[i]);
      mean.values[i] = fmaf(rates.one_minus_beta1, g, rates.beta1 * mean.values[i]);
      square.values[i] = fmaf(rates.one_minus_beta2 * g, g, rates.beta2 * square.values[i]);
      const float root = sqrtf(square.values[i] / v_correction);
      const float direction = (mean.values[i] / m_correction) / (root + rates.epsilon);
      const float change = fmaf(rates.weight_decay, w, direction);
      weight.values[i] = from_float<Number>(fmaf(-rates.learning_rate, change, w));
    }
    store<count>(m, first, mean);
    store<count>(v, first, square);
    store<count>(weights, first, weight);
  }
};

}  // namespace

// --- launcher ------------------------------------------------------------------------------------

Launch prepare_adamw(const KernelShape& shape, DType dtype, const KernelScalars& scalars,
                     const LaunchContext&) {
  const AdamwRates rates = rates_of(scalars);
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
