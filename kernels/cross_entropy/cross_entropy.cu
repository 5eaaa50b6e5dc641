// SPDX-License-Identifier: MIT
// The CUDA side of cross_entropy. Meaning and shapes: cross_entropy.h.
#include <cfloat>

#include "kernels/cross_entropy/cross_entropy.h"
#include "kernels/launch.cuh"

namespace stepgate {
namespace {

// --- kernels -------------------------------------------------------------------------------------

constexpr int largest_block = 512;
constexpr unsigned whole_warp = 0xffffffffu;

// Sum of exponentials relative to the largest logit so far (Milakov and Gimelshein: Online
// normalizer calculation for softmax, 2018). Starts at the smallest float rather than at minus
// infinity, whose difference from itself is no number.
struct Normalizer {
  float largest = -FLT_MAX;
  float sum = 0.0f;

  __device__ void add(const Normalizer& other) {
    const float larger = fmaxf(largest, other.largest);
    sum = sum * expf(largest - larger) + other.sum * expf(other.largest - larger);
    largest = larger;
  }
};

// Every thread gets the sum over the block, by one fixed tree. The block has whole warps.
__device__ Normalizer sum_over_block(Normalizer own) {
  __shared__ Normalizer of_warp[largest_block / 32];
  for (int distance = 16; distance > 0; distance /= 2) {
    own.add({__shfl_xor_sync(whole_warp, own.largest, distance),
             __shfl_xor_sync(whole_warp, own.sum, distance)});
  }
  if (threadIdx.x % 32 == 0) of_warp[threadIdx.x / 32] = own;
  __syncthreads();
  Normalizer all;
  for (int warp = 0; warp < blockDim.x / 32; ++warp) all.add(of_warp[warp]);
  return all;
}

// One block a row. The second pass finds the row in cache. The gradient may be the logits: all
// reads that cross threads end before the block's barrier.
template <int count, class Number>
__global__ void __launch_bounds__(largest_block)
    cross_entropy(const Number* logits, const std::int32_t* labels, Number* gradient,
                  float* row_losses, std::int64_t columns) {
  const std::int64_t row = blockIdx.x;
  const Number* row_logits = logits + row * columns;
  Number* row_gradient = gradient + row * columns;
  const std::int64_t label = labels[row];
  const float label_logit = to_float(row_logits[label]);

  Normalizer own;
  for (std::int64_t c = threadIdx.x * count; c < columns; c += blockDim.x * count) {
    const auto pack = load<count>(row_logits, c);
    float largest = own.largest;
#pragma unroll
    for (int i = 0; i < count; ++i) largest = fmaxf(largest, to_float(pack.values[i]));
    own.sum *= expf(own.largest - largest);
    own.largest = largest;
#pragma unroll
    for (int i = 0; i < count; ++i) own.sum += expf(to_float(pack.values[i]) - largest);
  }
  const Normalizer all = sum_over_block(own);
  if (threadIdx.x == 0) row_losses[row] = logf(all.sum) + (all.largest - label_logit);

  const float rows = static_cast<float>(gridDim.x);
  for (std::int64_t c = threadIdx.x * count; c < columns; c += blockDim.x * count) {
    auto pack = load<count>(row_logits, c);
#pragma unroll
    for (int i = 0; i < count; ++i) {
      const float probability = expf(to_float(pack.values[i]) - all.largest) / all.sum;
      pack.values[i] = from_float<Number>((probability - (c + i == label ? 1.0f : 0.0f)) / rows);
    }
    store<count>(row_gradient, c, pack);
  }
}

// --- launcher ------------------------------------------------------------------------------------

// Two packs a thread at least where the row has them, since the barrier costs more with every warp.
unsigned block_for(std::int64_t packs) {
  unsigned threads = 32;
  while (threads < largest_block && 2 * threads < packs) threads *= 2;
  return threads;
}

}  // namespace

Launch prepare_cross_entropy(const KernelShape& shape, DType dtype, const KernelScalars&,
                             const LaunchContext&) {
  return with_storage(dtype, [&](auto zero) -> Launch {
    using Number = decltype(zero);
    return [shape](void* const* buffers, cudaStream_t stream) {
      constexpr int count = access_bytes / sizeof(Number);
      const auto* logits = static_cast<const Number*>(buffers[0]);
      auto* gradient = static_cast<Number*>(buffers[2]);
      const bool packs = shape.columns % count == 0 && aligned_to_access(logits, gradient);
      auto* const kernel = packs ? cross_entropy<count, Number> : cross_entropy<1, Number>;
      const unsigned threads = block_for(packs ? shape.columns / count : shape.columns);
      kernel<<<static_cast<unsigned>(shape.rows), threads, 0, stream>>>(
          logits, static_cast<const std::int32_t*>(buffers[1]), gradient,
          static_cast<float*>(buffers[3]), shape.columns);
      check_launch("cross_entropy");
    };
  });
}

}  // namespace stepgate
