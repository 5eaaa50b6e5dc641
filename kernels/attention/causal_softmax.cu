// SPDX-License-Identifier: MIT
// The CUDA side of causal_softmax. Meaning and shapes: attention.h.
#include "kernels/attention/attention.h"

#include "kernels/attention/causal_rows.cuh"

namespace stepgate {
namespace {

// One block a row. The later passes find the row in cache. The probabilities may be the scores: a
// thread writes what it alone has read.
template <int count, class Number>
__global__ void __launch_bounds__(largest_row_block)
    causal_softmax(const Number* scores, Number* probabilities, int columns, float scale) {
  __shared__ float of_warp[2][largest_row_block / 32];
  const std::int64_t row = blockIdx.x;
  const int last = static_cast<int>(row % columns);
  const Number* row_scores = scores + row * columns;
  Number* row_probabilities = probabilities + row * columns;
  const int start = threadIdx.x * count, step = blockDim.x * count;

  float largest = Largest::nothing;
  for (int c = start; c <= last; c += step) {
    const auto pack = load<count>(row_scores, c);
#pragma unroll
    for (int i = 0; i < count; ++i) {
      if (c + i <= last) largest = fmaxf(largest, scale * to_float(pack.values[i]));
    }
  }
  largest = over_block(largest, Largest{}, of_warp[0]);

  float sum = 0.0f;
  for (int c = start; c <= last; c += step) {
    const auto pack = load<count>(row_scores, c);
#pragma unroll
    for (int i = 0; i < count; ++i) {
      if (c + i <= last) sum += expf(scale * to_float(pack.values[i]) - largest);
    }
  }
  const float factor = 1.0f / over_block(sum, Sum{}, of_warp[1]);

  for (int c = start; c < columns; c += step) {
    Pack<Number, count> pack = {};
    if (c <= last) pack = load<count>(row_scores, c);
#pragma unroll
    for (int i = 0; i < count; ++i) {
      const float weight =
          c + i <= last ? expf(scale * to_float(pack.values[i]) - largest) * factor : 0.0f;
      pack.values[i] = from_float<Number>(weight);
    }
    store(row_probabilities, c, pack);
  }
}

}  // namespace

Launch prepare_causal_softmax(const KernelShape& shape, DType dtype,
                              const KernelAttributes& attributes, const LaunchContext&) {
  const auto scale = static_cast<float>(attributes.as<kernels::CausalSoftmax>().scale);
  return with_storage(dtype, [&](auto zero) -> Launch {
    using Number = decltype(zero);
    return [shape, scale](void* const* buffers, cudaStream_t stream) {
      constexpr int count = access_bytes / sizeof(Number);
      const auto* scores = static_cast<const Number*>(buffers[0]);
      auto* probabilities = static_cast<Number*>(buffers[1]);
      const bool packs = shape.columns % count == 0 && aligned_to_access(scores, probabilities);
      auto* const kernel = packs ? causal_softmax<count, Number> : causal_softmax<1, Number>;
      const unsigned threads = row_block(packs ? shape.columns / count : shape.columns);
      kernel<<<static_cast<unsigned>(shape.rows), threads, 0, stream>>>(
          scores, probabilities, static_cast<int>(shape.columns), scale);
      check_launch("causal_softmax");
    };
  });
}

}  // namespace stepgate
