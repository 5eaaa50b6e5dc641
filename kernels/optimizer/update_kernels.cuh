// SPDX-License-Identifier: MIT
// The CUDA side of the kernels of an optimizer's rule; update_kernels.h has their operands.
#pragma once

#include "kernels/mixed_packs.cuh"
#include "kernels/optimizer/update_kernels.h"

namespace stepgate {

// A rule on the device has the type `Named`, as on the host, and the functions
//   Rule::rates(attributes), computed on the host, of type Rule::Rates;
//   Rule::corrections(rates, updates), computed by each thread, since only the device knows the
//     number of the update;
//   Rule::step(rates, corrections, gradient, weight, moments), which updates the moments and
//     returns the new weight.
template <class Rule, UpdateKind kind, class Number>
struct UpdateElements {
  Number* weights;
  const Number* gradients;
  float* master;
  float* moments[Rule::Named::moments];
  const void* steering;
  typename Rule::Rates rates;

  template <int count>
  __device__ void apply(std::int64_t first) const {
    using Layout = UpdateLayout<Rule, kind>;
    // The operands are loaded before the control is read: a skipped launch loads them in vain, but
    // other launches wait only once.
    const auto gradient = load<count>(gradients, first);
    auto weight = [&] {
      if constexpr (kind == UpdateKind::master)
        return load<count>(master, first);
      else
        return load<count>(weights, first);
    }();
    Pack<float, count> kept[Rule::Named::moments];
#pragma unroll
    for (int moment = 0; moment < static_cast<int>(Rule::Named::moments); ++moment)
      kept[moment] = load<count>(moments[moment], first);
    float factor = 1.0f, updates = 0.0f;
    if constexpr (Layout::controlled) {
      const auto* control = static_cast<const float*>(steering);
      factor = control[update_control::factor];
      updates = control[update_control::updates];
      if (factor == 0.0f) return;
    }
    if constexpr (Layout::counted)
      updates = static_cast<float>(*static_cast<const std::uint64_t*>(steering));
    const auto corrections = Rule::corrections(rates, updates);
    Pack<Number, count> rounded;
#pragma unroll
    for (int i = 0; i < count; ++i) {
      float values[Rule::Named::moments];
#pragma unroll
      for (int moment = 0; moment < static_cast<int>(Rule::Named::moments); ++moment)
        values[moment] = kept[moment].values[i];
      const float after = Rule::step(rates, corrections, factor * to_float(gradient.values[i]),
                                     to_float(weight.values[i]), values);
#pragma unroll
      for (int moment = 0; moment < static_cast<int>(Rule::Named::moments); ++moment)
        kept[moment].values[i] = values[moment];
      if constexpr (kind == UpdateKind::master) weight.values[i] = after;
      rounded.values[i] = from_float<Number>(after);
    }
    if constexpr (kind == UpdateKind::master) store<count>(master, first, weight);
#pragma unroll
    for (int moment = 0; moment < static_cast<int>(Rule::Named::moments); ++moment)
      store<count>(moments[moment], first, kept[moment]);
    store<count>(weights, first, rounded);
  }
};

template <class Rule, UpdateKind kind>
Launch prepare_update(const MatrixShape& shape, DType dtype,
                      const typename Rule::Named::Attributes& attributes) {
  using Layout = UpdateLayout<Rule, kind>;
  const std::int64_t parameters = elements_of(shape);
  const auto rates = Rule::rates(attributes);
  return with_storage(dtype, [&](auto zero) -> Launch {
    using Number = decltype(zero);
    // A plain rule moves 16 bytes of weights per thread; other kinds move mixed_count numbers.
    constexpr int count = kind == UpdateKind::plain ? access_bytes / sizeof(Number) : mixed_count;
    return [parameters, rates](void* const* buffers, cudaStream_t stream) {
      UpdateElements<Rule, kind, Number> element{
          .weights = static_cast<Number*>(buffers[0]),
          .gradients = static_cast<const Number*>(buffers[1]),
          .rates = rates};
      bool aligned = all_aligned_to_packs<count>(element.weights, element.gradients);
      if constexpr (kind == UpdateKind::master) {
        element.master = static_cast<float*>(buffers[2]);
        aligned = aligned && aligned_to_packs<count>(element.master);
      }
      for (std::size_t moment = 0; moment < Rule::Named::moments; ++moment) {
        element.moments[moment] = static_cast<float*>(buffers[Layout::first_moment + moment]);
        aligned = aligned && aligned_to_packs<count>(element.moments[moment]);
      }
      if constexpr (Layout::operands > Layout::steering)
        element.steering = buffers[Layout::steering];
      launch_elementwise<count>(update_name<typename Rule::Named>(kind), parameters, element,
                                aligned, stream);
    };
  });
}

}  // namespace stepgate
