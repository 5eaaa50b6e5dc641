// SPDX-License-Identifier: MIT
// The CUDA side of square_sums. Meaning and shapes: optimizer.h.
#include "kernels/launch.cuh"
#include "kernels/optimizer/block_sum.cuh"
#include "kernels/optimizer/optimizer.h"

namespace stepgate {
namespace {

constexpr int block_threads = 256;
constexpr int blocks_per_multiprocessor = 6;  // 40 registers a thread: none spills
constexpr int packs_in_flight = 4;            // of a thread: 96 KiB a multiprocessor

template <int count, class Number>
__device__ __forceinline__ float sum_with(float sum, const Pack<Number, count>& pack) {
#pragma unroll
  for (int i = 0; i < count; ++i) {
    const float number = to_float(pack.values[i]);
    sum = fmaf(number, number, sum);
  }
  return sum;
}

// A block for each piece.
template <int count, class Number>
__global__ void __launch_bounds__(block_threads, blocks_per_multiprocessor)
    square_sums(const Number* gradients, float* partials, std::int64_t numbers,
                std::int64_t piece) {
  constexpr int step = block_threads * count;
  const std::int64_t begin = blockIdx.x * piece;
  const std::int64_t end = min(begin + piece, numbers);
  // All indices below are the first of a pack that ends at `end` at most.
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
  // The one thread whose pack would reach behind the end takes what is left, number by number.
  for (; index < end; ++index) sums[1] = sum_with(sums[1], load<1>(gradients, index));
  const float sum = block_sum<block_threads>((sums[0] + sums[1]) + (sums[2] + sums[3]));
  if (threadIdx.x == 0) partials[blockIdx.x] = sum;
}

}  // namespace

Launch prepare_square_sums(const KernelShape& shape, DType dtype, const KernelAttributes&,
                           const LaunchContext&) {
  const std::int64_t piece = square_sum_piece(shape);
  return with_storage(dtype, [&](auto zero) -> Launch {
    using Number = decltype(zero);
    return [shape, piece](void* const* buffers, cudaStream_t stream) {
      constexpr int count = access_bytes / sizeof(Number);
      const auto* gradients = static_cast<const Number*>(buffers[0]);
      auto* const kernel =
          aligned_to_access(gradients) ? square_sums<count, Number> : square_sums<1, Number>;
      kernel<<<static_cast<unsigned>(shape.depth), block_threads, 0, stream>>>(
          gradients, static_cast<float*>(buffers[1]), shape.columns, piece);
      check_launch("square_sums");
    };
  });
}

}  // namespace stepgate
