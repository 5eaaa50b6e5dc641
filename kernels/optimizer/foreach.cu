// SPDX-License-Identifier: MIT
// The CUDA side of the foreach passes. Meaning and shapes: optimizer.h.
#include "kernels/mixed_packs.cuh"
#include "kernels/optimizer/adamw_update.cuh"
#include "kernels/optimizer/optimizer.h"
#include "kernels/update_control.h"

namespace stepgate {
namespace {

using Pass = ForeachPass;

constexpr bool is_controlled(Pass pass) {
  return pass != Pass::sqrt && pass != Pass::add;
}

// Operands between the target and the control.
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

// The number that the pass gives all elements alike and only the device knows.
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
Launch launching(const KernelShape& shape, const AdamwRates& rates) {
  // 16 bytes a thread where nothing is fp32.
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
Launch prepare_foreach(const KernelShape& shape, DType dtype, const KernelAttributes& attributes,
                       const LaunchContext&) {
  const AdamwRates rates = adamw_rates(attributes.as<kernels::Adamw>());
  constexpr bool all_single =
      std::is_same_v<Target<pass, void>, float> && std::is_same_v<First<pass, void>, float>;
  if constexpr (all_single) {
    return launching<pass, float>(shape, rates);
  } else {
    return with_storage(
        dtype, [&](auto zero) -> Launch { return launching<pass, decltype(zero)>(shape, rates); });
  }
}

using PreparePass = std::remove_pointer_t<Prepare>;
template PreparePass prepare_foreach<ForeachPass::unscale>;
template PreparePass prepare_foreach<ForeachPass::decay>;
template PreparePass prepare_foreach<ForeachPass::lerp>;
template PreparePass prepare_foreach<ForeachPass::mul>;
template PreparePass prepare_foreach<ForeachPass::addcmul>;
template PreparePass prepare_foreach<ForeachPass::sqrt>;
template PreparePass prepare_foreach<ForeachPass::div>;
template PreparePass prepare_foreach<ForeachPass::add>;
template PreparePass prepare_foreach<ForeachPass::addcdiv>;

}  // namespace stepgate
