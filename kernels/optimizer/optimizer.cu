// SPDX-License-Identifier: MIT
// CUDA kernels and launchers of the optimizers; optimizer.h has their meaning and shapes.
#include "kernels/optimizer/optimizer.h"

#include <cuda_runtime.h>
#include <cmath>

#include "kernels/launch.cuh"
#include "kernels/mixed_packs.cuh"
#include "kernels/optimizer/update_kernels.cuh"
#include "kernels/update_control.h"

namespace stepgate {

// The sum over the threads of a block, in a fixed order: the lanes of a warp, then the warps.

__device__ __forceinline__ float warp_sum(float value) {
#pragma unroll
  for (int distance = 16; distance > 0; distance /= 2) {
    value += __shfl_xor_sync(0xffffffffu, value, distance);
  }
  return value;
}

// Every thread of the block must call it, once; thread 0 receives the sum.
template <int threads>
__device__ __forceinline__ float block_sum(float value) {
  constexpr int warps = threads / 32;
  static_assert(threads % 32 == 0 && warps <= 32);
  __shared__ float of_warp[warps];
  value = warp_sum(value);
  if (threadIdx.x % 32 == 0) of_warp[threadIdx.x / 32] = value;
  __syncthreads();
  if (threadIdx.x >= 32) return 0.0f;
  return warp_sum(threadIdx.x < warps ? of_warp[threadIdx.x] : 0.0f);
}

// One AdamW step of one parameter in fp32, which all its kernels share. Values that are equal for
// all parameters are computed before. AdamwRates come from the host. Each thread computes
// AdamwCorrections, since only the device knows the number of the update. optimizer.h has the
// formula and attributes.

struct AdamwRates {
  float learning_rate;
  float one_minus_beta1;
  float beta1;
  float one_minus_beta2;
  float beta2;
  float log_beta1;
  float log_beta2;
  float epsilon;
  float decay;  // learning_rate * weight_decay
};

inline AdamwRates adamw_rates(const kernels::Adamw::Attributes& rule) {
  const double beta1 = rule.beta1;
  const double beta2 = rule.beta2;
  const double learning_rate = rule.learning_rate;
  return {.learning_rate = static_cast<float>(learning_rate),
          .one_minus_beta1 = static_cast<float>(1 - beta1),
          .beta1 = static_cast<float>(beta1),
          .one_minus_beta2 = static_cast<float>(1 - beta2),
          .beta2 = static_cast<float>(beta2),
          .log_beta1 = static_cast<float>(std::log(beta1)),
          .log_beta2 = static_cast<float>(std::log(beta2)),
          .epsilon = static_cast<float>(rule.epsilon),
          .decay = static_cast<float>(learning_rate * rule.weight_decay)};
}

struct AdamwCorrections {
  float step_size;    // learning_rate / (1 - beta1^t)
  float root_factor;  // 1 / sqrt(1 - beta2^t)
};

// Computes 1 - beta^t without the cancellation that occurs for beta near 1 and small t.
__device__ __forceinline__ float bias_correction(float log_beta, float updates) {
  return -expm1f(updates * log_beta);
}

__device__ __forceinline__ AdamwCorrections adamw_corrections(const AdamwRates& rates,
                                                              float updates) {
  return {rates.learning_rate / bias_correction(rates.log_beta1, updates),
          1.0f / sqrtf(bias_correction(rates.log_beta2, updates))};
}

// Updates m and v and returns the new weight.
__device__ __forceinline__ float adamw_step(const AdamwRates& rates,
                                            const AdamwCorrections& corrections, float gradient,
                                            float weight, float& m, float& v) {
  m = fmaf(rates.one_minus_beta1, gradient, rates.beta1 * m);
  v = fmaf(rates.one_minus_beta2 * gradient, gradient, rates.beta2 * v);
  const float denominator = fmaf(sqrtf(v), corrections.root_factor, rates.epsilon);
  const float decayed = fmaf(-rates.decay, weight, weight);
  return fmaf(-corrections.step_size, m / denominator, decayed);
}

namespace {

// How a rule is computed on the device (update_kernels.cuh).
template <class Named>
struct OnDevice;

template <>
struct OnDevice<kernels::Adamw> {
  using Rates = AdamwRates;
  using Named = kernels::Adamw;

  static Rates rates(const Named::Attributes& rule) { return adamw_rates(rule); }
  static __device__ __forceinline__ AdamwCorrections corrections(const AdamwRates& rates,
                                                                 float updates) {
    return adamw_corrections(rates, updates);
  }
  static __device__ __forceinline__ float step(const AdamwRates& rates,
                                               const AdamwCorrections& corrections, float gradient,
                                               float weight, float* moments) {
    return adamw_step(rates, corrections, gradient, weight, moments[0], moments[1]);
  }
};

template <>
struct OnDevice<kernels::Lion> {
  struct Rates {
    float learning_rate, beta1, one_minus_beta1, beta2, one_minus_beta2;
    float decay;  // learning_rate * weight_decay
  };
  struct Corrections {};
  using Named = kernels::Lion;

  static Rates rates(const Named::Attributes& rule) {
    return {.learning_rate = static_cast<float>(rule.learning_rate),
            .beta1 = static_cast<float>(rule.beta1),
            .one_minus_beta1 = static_cast<float>(1 - rule.beta1),
            .beta2 = static_cast<float>(rule.beta2),
            .one_minus_beta2 = static_cast<float>(1 - rule.beta2),
            .decay = static_cast<float>(rule.learning_rate * rule.weight_decay)};
  }
  static __device__ __forceinline__ Corrections corrections(const Rates&, float) { return {}; }
  static __device__ __forceinline__ float step(const Rates& rates, Corrections, float gradient,
                                               float weight, float* moments) {
    const float c = fmaf(rates.one_minus_beta1, gradient, rates.beta1 * moments[0]);
    moments[0] = fmaf(rates.one_minus_beta2, gradient, rates.beta2 * moments[0]);
    const float sign = c > 0.0f ? 1.0f : c < 0.0f ? -1.0f : c;
    return fmaf(-rates.learning_rate, sign, fmaf(-rates.decay, weight, weight));
  }
};

template <>
struct OnDevice<kernels::Momentum> {
  struct Rates {
    float learning_rate, momentum, weight_decay;
  };
  struct Corrections {};
  using Named = kernels::Momentum;

  static Rates rates(const Named::Attributes& rule) {
    return {.learning_rate = static_cast<float>(rule.learning_rate),
            .momentum = static_cast<float>(rule.momentum),
            .weight_decay = static_cast<float>(rule.weight_decay)};
  }
  static __device__ __forceinline__ Corrections corrections(const Rates&, float) { return {}; }
  static __device__ __forceinline__ float step(const Rates& rates, Corrections, float gradient,
                                               float weight, float* moments) {
    moments[0] = fmaf(rates.momentum, moments[0], fmaf(rates.weight_decay, weight, gradient));
    return fmaf(-rates.learning_rate, moments[0], weight);
  }
};

}  // namespace

template <class Named, UpdateKind kind>
Launch UpdateKernel<Named, kind>::prepare(const Shape& shape, DType dtype,
                                          const Attributes& attributes, const LaunchContext&) {
  return prepare_update<OnDevice<Named>, kind>(shape, dtype, attributes);
}

template struct UpdateKernel<kernels::Adamw, UpdateKind::plain>;
template struct UpdateKernel<kernels::Adamw, UpdateKind::clipped>;
template struct UpdateKernel<kernels::Adamw, UpdateKind::master>;
template struct UpdateKernel<kernels::Lion, UpdateKind::plain>;
template struct UpdateKernel<kernels::Lion, UpdateKind::clipped>;
template struct UpdateKernel<kernels::Lion, UpdateKind::master>;
template struct UpdateKernel<kernels::Momentum, UpdateKind::plain>;
template struct UpdateKernel<kernels::Momentum, UpdateKind::clipped>;
template struct UpdateKernel<kernels::Momentum, UpdateKind::master>;

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

Launch kernels::Sgd::prepare(const Shape& shape, DType dtype, const Attributes& attributes,
                             const LaunchContext&) {
  const auto learning_rate = static_cast<float>(attributes.learning_rate);
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

namespace {

template <class Number>
struct Follow {
  float* average;
  const Number* weights;
  float share;  // of the new weights

  template <int count>
  __device__ void apply(std::int64_t first) const {
    auto kept = load<count>(average, first);
    const auto weight = load<count>(weights, first);
#pragma unroll
    for (int i = 0; i < count; ++i) {
      kept.values[i] = fmaf(share, to_float(weight.values[i]) - kept.values[i], kept.values[i]);
    }
    store<count>(average, first, kept);
  }
};

}  // namespace

Launch kernels::MovingAverage::prepare(const Shape& shape, DType dtype,
                                       const Attributes& attributes, const LaunchContext&) {
  const auto share = static_cast<float>(1 - attributes.decay);
  const std::int64_t parameters = elements_of(shape);
  return with_storage(dtype, [&](auto zero) -> Launch {
    using Number = decltype(zero);
    return [parameters, share](void* const* buffers, cudaStream_t stream) {
      const Follow<Number> element{static_cast<float*>(buffers[0]),
                                   static_cast<const Number*>(buffers[1]), share};
      launch_elementwise<mixed_count>(
          "moving_average", parameters, element,
          all_aligned_to_packs<mixed_count>(element.average, element.weights), stream);
    };
  });
}

namespace {

using Pass = ForeachPass;

constexpr bool is_controlled(Pass pass) {
  return pass != Pass::sqrt && pass != Pass::add;
}

// The number of operands between the target and the control.
constexpr int inputs_of(Pass pass) {
  if (pass == Pass::addcdiv) return 2;
  return pass == Pass::lerp || pass == Pass::addcmul || pass == Pass::sqrt ? 1 : 0;
}

template <Pass pass, class Number>
using Target =
    std::conditional_t<pass == Pass::unscale || pass == Pass::decay || pass == Pass::addcdiv,
                       Number, float>;

template <Pass pass, class Number>
using First = std::conditional_t<pass == Pass::lerp || pass == Pass::addcmul, Number, float>;

// The coefficient of a pass that is equal for all elements and depends on the control; 0 for other
// passes.
template <Pass pass>
__device__ __forceinline__ float coefficient(const AdamwRates& rates, const float* control) {
  if constexpr (pass == Pass::unscale) return control[update_control::factor];
  if constexpr (pass == Pass::div) {
    return adamw_corrections(rates, control[update_control::updates]).root_factor;
  }
  if constexpr (pass == Pass::addcdiv) {
    return adamw_corrections(rates, control[update_control::updates]).step_size;
  }
  return 0.0f;
}

template <Pass pass>
__device__ __forceinline__ float formula(const AdamwRates& rates, float coefficient, float target,
                                         float first, float second) {
  if constexpr (pass == Pass::unscale || pass == Pass::div) return coefficient * target;
  if constexpr (pass == Pass::decay) return fmaf(-rates.decay, target, target);
  if constexpr (pass == Pass::lerp) return fmaf(rates.one_minus_beta1, first - target, target);
  if constexpr (pass == Pass::mul) return rates.beta2 * target;
  if constexpr (pass == Pass::addcmul) return fmaf(rates.one_minus_beta2 * first, first, target);
  if constexpr (pass == Pass::sqrt) return sqrtf(first);
  if constexpr (pass == Pass::add) return target + rates.epsilon;
  if constexpr (pass == Pass::addcdiv) return fmaf(-coefficient, first / second, target);
}

template <Pass pass, class Number>
struct MakePass {
  Target<pass, Number>* target;
  const First<pass, Number>* first;
  const float* second;
  const float* control;
  AdamwRates rates;

  template <int count>
  __device__ void apply(std::int64_t index) const {
    Pack<Target<pass, Number>, count> out{};
    Pack<First<pass, Number>, count> one{};
    Pack<float, count> two{};
    if constexpr (pass != Pass::sqrt) out = load<count>(target, index);
    if constexpr (inputs_of(pass) > 0) one = load<count>(first, index);
    if constexpr (inputs_of(pass) > 1) two = load<count>(second, index);
    if constexpr (is_controlled(pass)) {
      if (control[update_control::factor] == 0.0f) return;
    }
    const float scale = coefficient<pass>(rates, control);
#pragma unroll
    for (int i = 0; i < count; ++i) {
      out.values[i] = from_float<Target<pass, Number>>(formula<pass>(
          rates, scale, to_float(out.values[i]), to_float(one.values[i]), two.values[i]));
    }
    store<count>(target, index, out);
  }
};

template <Pass pass, class Number>
Launch launching(const MatrixShape& shape, const AdamwRates& rates) {
  // A thread moves 16 bytes of each operand if no operand is fp32.
  constexpr bool all_stored = pass == Pass::unscale || pass == Pass::decay;
  constexpr int count = all_stored ? access_bytes / static_cast<int>(sizeof(Number)) : mixed_count;
  return [numbers = shape.rows * shape.columns, rates](void* const* buffers, cudaStream_t stream) {
    constexpr int inputs = inputs_of(pass);
    MakePass<pass, Number> element{};
    element.target = static_cast<Target<pass, Number>*>(buffers[0]);
    if (inputs > 0) element.first = static_cast<const First<pass, Number>*>(buffers[1]);
    if (inputs > 1) element.second = static_cast<const float*>(buffers[2]);
    if (is_controlled(pass)) element.control = static_cast<const float*>(buffers[1 + inputs]);
    element.rates = rates;
    const bool aligned = all_aligned_to_packs<count>(element.target, element.first, element.second);
    launch_elementwise<count>("foreach pass", numbers, element, aligned, stream);
  };
}

}  // namespace

template <ForeachPass pass>
Launch kernels::Foreach<pass>::prepare(const Shape& shape, DType dtype,
                                       const Attributes& attributes, const LaunchContext&) {
  const AdamwRates rates = adamw_rates(attributes);
  constexpr bool all_single =
      std::is_same_v<Target<pass, void>, float> && std::is_same_v<First<pass, void>, float>;
  if constexpr (all_single) {
    return launching<pass, float>(shape, rates);
  } else {
    return with_storage(
        dtype, [&](auto zero) -> Launch { return launching<pass, decltype(zero)>(shape, rates); });
  }
}

template struct kernels::Foreach<ForeachPass::unscale>;
template struct kernels::Foreach<ForeachPass::decay>;
template struct kernels::Foreach<ForeachPass::lerp>;
template struct kernels::Foreach<ForeachPass::mul>;
template struct kernels::Foreach<ForeachPass::addcmul>;
template struct kernels::Foreach<ForeachPass::sqrt>;
template struct kernels::Foreach<ForeachPass::div>;
template struct kernels::Foreach<ForeachPass::add>;
template struct kernels::Foreach<ForeachPass::addcdiv>;

namespace {

constexpr int clip_block_threads = 512;

struct ClipRates {
  float max_norm;
  float growth_interval;
  float growth;
  float backoff;
};

__device__ void skip(float* control, const ClipRates& rates) {
  control[update_control::factor] = 0.0f;
  control[update_control::good_updates] = 0.0f;
  if (rates.growth_interval != 0.0f) control[update_control::loss_scale] *= rates.backoff;
}

__device__ void count_good_update(float* control, const ClipRates& rates) {
  control[update_control::updates] += 1.0f;
  const float good = control[update_control::good_updates] + 1.0f;
  const bool grows = rates.growth_interval != 0.0f && good >= rates.growth_interval;
  control[update_control::good_updates] = grows ? 0.0f : good;
  if (grows) control[update_control::loss_scale] *= rates.growth;
}

// One block is enough, since there are a few thousand sums at most.
__global__ void __launch_bounds__(clip_block_threads)
    clip(const float* partials, float* control, std::int64_t count, ClipRates rates) {
  float own = 0.0f;
#pragma unroll 4
  for (std::int64_t i = threadIdx.x; i < count; i += clip_block_threads) own += partials[i];
  const float sum = block_sum<clip_block_threads>(own);
  if (threadIdx.x != 0) return;
  const float scale = control[update_control::loss_scale];
  const float norm = sqrtf(sum) / scale;
  control[update_control::norm] = norm;
  if (!isfinite(norm)) return skip(control, rates);
  const float limit = rates.max_norm / (norm + static_cast<float>(clip_epsilon));
  const float clipped = rates.max_norm == 0.0f ? 1.0f : fminf(1.0f, limit);
  control[update_control::factor] = clipped / scale;
  count_good_update(control, rates);
}

}  // namespace

Launch kernels::Clip::prepare(const Shape& shape, DType, const Attributes& attributes,
                              const LaunchContext&) {
  const ClipRates rates{.max_norm = static_cast<float>(attributes.max_norm),
                        .growth_interval = static_cast<float>(attributes.growth_interval),
                        .growth = static_cast<float>(attributes.growth),
                        .backoff = static_cast<float>(attributes.backoff)};
  return [count = shape.partials, rates](void* const* buffers, cudaStream_t stream) {
    clip<<<1, clip_block_threads, 0, stream>>>(static_cast<const float*>(buffers[0]),
                                               static_cast<float*>(buffers[1]), count, rates);
    check_launch("clip");
  };
}

namespace {

constexpr int square_sums_block_threads = 256;
constexpr int blocks_per_multiprocessor = 6;  // 40 registers per thread without spills
constexpr int packs_in_flight = 4;            // per thread: 96 KiB per multiprocessor

template <int count, class Number>
__device__ __forceinline__ float sum_with(float sum, const Pack<Number, count>& pack) {
#pragma unroll
  for (int i = 0; i < count; ++i) {
    const float number = to_float(pack.values[i]);
    sum = fmaf(number, number, sum);
  }
  return sum;
}

// One block processes each piece.
template <int count, class Number>
__global__ void __launch_bounds__(square_sums_block_threads, blocks_per_multiprocessor)
    square_sums(const Number* gradients, float* partials, std::int64_t numbers,
                std::int64_t piece) {
  constexpr int step = square_sums_block_threads * count;
  const std::int64_t begin = blockIdx.x * piece;
  const std::int64_t end = min(begin + piece, numbers);
  // Each `index` below is the first element of a pack that ends at or before `end`.
  const std::int64_t last = end - count;
  std::int64_t index = begin + threadIdx.x * count;
  float sums[packs_in_flight] = {};
  for (; index + (packs_in_flight - 1) * step <= last; index += packs_in_flight * step) {
    Pack<Number, count> packs[packs_in_flight];
#pragma unroll
    for (int i = 0; i < packs_in_flight; ++i) packs[i] = load<count>(gradients, index + i * step);
#pragma unroll
    for (int i = 0; i < packs_in_flight; ++i) sums[i] = sum_with(sums[i], packs[i]);
  }
  for (; index <= last; index += step) {
    sums[0] = sum_with(sums[0], load<count>(gradients, index));
  }
  // One thread has a pack that would exceed the end; it processes the remaining elements one by
  // one.
  for (; index < end; ++index) sums[1] = sum_with(sums[1], load<1>(gradients, index));
  const float sum = block_sum<square_sums_block_threads>((sums[0] + sums[1]) + (sums[2] + sums[3]));
  if (threadIdx.x == 0) partials[blockIdx.x] = sum;
}

}  // namespace

Launch kernels::SquareSums::prepare(const Shape& shape, DType dtype, const Attributes&,
                                    const LaunchContext&) {
  const std::int64_t piece = square_sum_piece(shape);
  return with_storage(dtype, [&](auto zero) -> Launch {
    using Number = decltype(zero);
    return [shape, piece](void* const* buffers, cudaStream_t stream) {
      constexpr int count = access_bytes / sizeof(Number);
      const auto* gradients = static_cast<const Number*>(buffers[0]);
      auto* const kernel =
          aligned_to_access(gradients) ? square_sums<count, Number> : square_sums<1, Number>;
      kernel<<<static_cast<unsigned>(shape.pieces), square_sums_block_threads, 0, stream>>>(
          gradients, static_cast<float*>(buffers[1]), shape.numbers, piece);
      check_launch("square_sums");
    };
  });
}

}  // namespace stepgate
