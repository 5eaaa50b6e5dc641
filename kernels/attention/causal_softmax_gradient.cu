// SPDX-License-Identifier: MIT
// The CUDA side of causal_softmax_gradient. Meaning and shapes: attention.h.
#include "kernels/attention/attention.h"

#include "kernels/attention/causal_rows.cuh"

namespace stepgate {
namespace {

// One block a row. The second pass finds the row in cache. d_scores may be d_probabilities: a
// thread writes what it alone has read.
template <int count, class Number>
__global__ void __launch_bounds__(largest_row_block)
    causal_softmax_gradient(const Number* probabilities, const Number* d_probabilities,
                            Number* d_scores, int columns, float scale) {
  __shared__ float of_warp[largest_row_block / 32];
  const std::int64_t row = blockIdx.x;
  const std::int64_t first = row * columns;
  const int last = static_cast<int>(row % columns);
  const int start = threadIdx.x * count, step = blockDim.x * count;

  float own = 0.0f;
  for (int c = start; c <= last; c += step) {
    const auto p = load<count>(probabilities, first + c);
    const auto dp = load<count>(d_probabilities, first + c);
#pragma unroll
    for (int i = 0; i < count; ++i) {
      if (c + i <= last) own += to_float(p.values[i]) * to_float(dp.values[i]);
    }
  }
  const float dot = over_block(own, Sum{}, of_warp);

  for (int c = start; c < columns; c += step) {
    Pack<Number, count> p = {}, dp = {};
    if (c <= last) {
      p = load<count>(probabilities, first + c);
      dp = load<count>(d_probabilities, first + c);
    }
#pragma unroll
    for (int i = 0; i < count; ++i) {
      const float slope = scale * to_float(p.values[i]) * (to_float(dp.values[i]) - dot);
      dp.values[i] = from_float<Number>(c + i <= last ? slope : 0.0f);
    }
    store(d_scores, first + c, dp);
  }
}

}  // namespace

Launch prepare_causal_softmax_gradient(const KernelShape& shape, DType dtype,
                                       const KernelAttributes& attributes, const LaunchContext&) {
  const auto scale = static_cast<float>(attributes.as<kernels::CausalSoftmaxGradient>().scale);
  return with_storage(dtype, [&](auto zero) -> Launch {
    using Number = decltype(zero);
    return [shape, scale](void* const* buffers, cudaStream_t stream) {
      constexpr int count = access_bytes / sizeof(Number);
      const auto* p = static_cast<const Number*>(buffers[0]);
      const auto* dp = static_cast<const Number*>(buffers[1]);
      auto* d_scores = static_cast<Number*>(buffers[2]);
      const bool packs = shape.columns % count == 0 && aligned_to_access(p, dp, d_scores);
      auto* const kernel =
          packs ? causal_softmax_gradient<count, Number> : causal_softmax_gradient<1, Number>;
      const unsigned threads = row_block(packs ? shape.columns / count : shape.columns);
      kernel<<<static_cast<unsigned>(shape.rows), threads, 0, stream>>>(
          p, dp, d_scores, static_cast<int>(shape.columns), scale);
      check_launch("causal_softmax_gradient");
    };
  });
}

}  // namespace stepgate
