// SPDX-License-Identifier: MIT
// The launcher of layer_norm_gradient and rms_norm_gradient, and the kernel for rows that
// norm_gradient_rows.cuh does not support.
#pragma once

#include "kernels/norm/norm_gradient_rows.cuh"

namespace stepgate {

constexpr int any_row_threads = 768;  // upper limit, with 80 registers per thread

// Processes a part whose rows are too long for a block's registers or cannot move in packs. A block
// processes one row at a time, reads it twice, and accumulates in the partials in memory. A thread
// accesses only its own partials.
template <NormKind kind, int count, class Number>
__global__ void __launch_bounds__(any_row_threads)
    norm_gradient_any(const NormGradientCall<Number> call) {
  __shared__ RowSums of_warps[2][any_row_threads / 32];
  const int warps = blockDim.x / 32;
  float* d_weight = call.partials + blockIdx.x * parameters_of(kind) * call.columns;
  float* d_bias = d_weight + call.columns;
  float* sums_d_x = call.sums_d_x == nullptr ? nullptr : call.sums_d_x + blockIdx.x * call.columns;
  const std::int64_t first = threadIdx.x * count, stride = blockDim.x * count;
  for (std::int64_t c = first; c < call.columns; c += stride) {
    store<count>(d_weight, c, Pack<float, count>{});
    if constexpr (kind == NormKind::layer) store<count>(d_bias, c, Pack<float, count>{});
    if (sums_d_x != nullptr) store<count>(sums_d_x, c, Pack<float, count>{});
  }
  int turn = 0;
  for (std::int64_t row = blockIdx.x; row < call.rows; row += call.parts, turn ^= 1) {
    const auto [mean, scale] = statistics_at<kind>(call.statistics, row);
    RowSums sums{0.0f, 0.0f};
#pragma unroll 2
    for (std::int64_t c = first; c < call.columns; c += stride) {
      const auto d_ys = load<count>(call.d_y, row * call.columns + c);
      const auto xs = load<count>(call.x, row * call.columns + c);
      const auto weights = load<count>(call.weight, c);
#pragma unroll
      for (int i = 0; i < count; ++i) {
        const float g = weighed(to_float(d_ys.values[i]), to_float(weights.values[i]));
        sums.sum += g;
        sums.projection = fmaf(g, (to_float(xs.values[i]) - mean) * scale, sums.projection);
      }
    }
    sums = over_group(sums, of_warps[turn], threadIdx.x / 32, warps, 1);
    const float mean_of_g = kind == NormKind::layer ? sums.sum * call.per_column : 0.0f;
    const float projection = sums.projection * call.per_column;
    for (std::int64_t c = first; c < call.columns; c += stride) {
      const auto d_ys = load<count>(call.d_y, row * call.columns + c);
      const auto xs = load<count>(call.x, row * call.columns + c);
      const auto weights = load<count>(call.weight, c);
      auto weight_sums = load<count>(d_weight, c);
      Pack<float, count> bias_sums{};
      if constexpr (kind == NormKind::layer) bias_sums = load<count>(d_bias, c);
      Pack<float, count> gradient_sums{};
      if (sums_d_x != nullptr) gradient_sums = load<count>(sums_d_x, c);
      Pack<Number, count> d_x{};
      if (call.accumulate) d_x = load<count>(call.d_x, row * call.columns + c);
#pragma unroll
      for (int i = 0; i < count; ++i) {
        const float d_y = to_float(d_ys.values[i]);
        const float normalised = (to_float(xs.values[i]) - mean) * scale;
        const float inner =
            (weighed(d_y, to_float(weights.values[i])) - mean_of_g) - normalised * projection;
        const float gradient = fmaf(scale, inner, to_float(d_x.values[i]));
        d_x.values[i] = from_float<Number>(gradient);
        gradient_sums.values[i] += gradient;
        weight_sums.values[i] = fmaf(d_y, normalised, weight_sums.values[i]);
        bias_sums.values[i] += d_y;
      }
      store<count>(call.d_x, row * call.columns + c, d_x);
      store<count>(d_weight, c, weight_sums);
      if constexpr (kind == NormKind::layer) store<count>(d_bias, c, bias_sums);
      if (sums_d_x != nullptr) store<count>(sums_d_x, c, gradient_sums);
    }
  }
}

constexpr int threads_for_any_row(std::int64_t packs) {
  return packs < any_row_threads ? static_cast<int>(ceiling_quotient(packs, 32) * 32)
                                 : any_row_threads;
}

template <NormKind kind, class Number>
void launch_norm_gradient(std::string_view name, const NormGradientCall<Number>& call,
                          const RowsKernel<Number>& rows, cudaStream_t stream) {
  constexpr int count = access_bytes / sizeof(Number);
  const auto parts = static_cast<unsigned>(call.parts);
  const bool in_packs =
      call.columns % count == 0 && aligned_to_access(call.d_y, call.x, call.weight, call.d_x);
  if (in_packs && rows.kernel != nullptr) {
    rows(call, stream);
  } else if (in_packs && aligned_to_access(call.partials)) {
    const int threads = threads_for_any_row(call.columns / count);
    norm_gradient_any<kind, count><<<parts, threads, 0, stream>>>(call);
  } else {
    norm_gradient_any<kind, 1><<<parts, threads_for_any_row(call.columns), 0, stream>>>(call);
  }
  check_launch(name);
}

// The launcher of the gradient kernel of that kind.
template <NormKind kind>
Launch prepare_norm_gradient(std::string_view name, const PartsShape& shape, DType dtype,
                             const NormGradientAttributes& attributes,
                             const LaunchContext& context) {
  const bool accumulate = attributes.accumulate;
  const bool sums_d_x = attributes.sums_d_x;
  return with_storage(dtype, [&](auto zero) -> Launch {
    using Number = decltype(zero);
    constexpr int count = access_bytes / sizeof(Number);
    const std::int64_t packs = ceiling_quotient(shape.columns, count);
    const auto rows = sums_d_x
                          ? rows_kernel<kind, SumsOfGradient::kept, count, Number>(packs, context)
                          : rows_kernel<kind, SumsOfGradient::none, count, Number>(packs, context);
    const std::int64_t of_parameters = shape.parts * parameters_of(kind) * shape.columns;
    return [=](void* const* buffers, cudaStream_t stream) {
      auto* partials = static_cast<float*>(buffers[5]);
      const NormGradientCall<Number> call{static_cast<const Number*>(buffers[0]),
                                          static_cast<const Number*>(buffers[1]),
                                          static_cast<const Number*>(buffers[2]),
                                          static_cast<const float*>(buffers[3]),
                                          static_cast<Number*>(buffers[4]),
                                          partials,
                                          sums_d_x ? partials + of_parameters : nullptr,
                                          shape.rows,
                                          shape.columns,
                                          shape.parts,
                                          1.0f / static_cast<float>(shape.columns),
                                          accumulate};
      launch_norm_gradient<kind>(name, call, rows, stream);
    };
  });
}

}  // namespace stepgate
