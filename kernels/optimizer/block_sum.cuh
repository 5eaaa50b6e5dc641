// SPDX-License-Identifier: MIT
// The sum of one number of each thread of a block, in an order that depends on nothing: the lanes
// of a warp, then the warps.
#pragma once

#include <cuda_runtime.h>

namespace stepgate {

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

}  // namespace stepgate
