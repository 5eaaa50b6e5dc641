// SPDX-License-Identifier: MIT
// Parts that kernels over the rows of causal matrices share: a block a row, its sums, and its size.
#pragma once

#include "kernels/launch.cuh"

namespace stepgate {

constexpr int largest_row_block = 512;

struct Sum {
  static constexpr float nothing = 0.0f;
  __device__ float operator()(float a, float b) const { return a + b; }
};

struct Largest {
  static constexpr float nothing = -3.402823466e38f;
  __device__ float operator()(float a, float b) const { return fmaxf(a, b); }
};

// Every thread gets the result over the block, by one fixed tree. The block has whole warps, and
// `space` a float a warp that nothing else uses.
template <class Combine>
__device__ float over_block(float own, Combine combine, float* space) {
  for (int distance = 16; distance > 0; distance /= 2) {
    own = combine(own, __shfl_xor_sync(0xffffffffu, own, distance));
  }
  if (threadIdx.x % 32 == 0) space[threadIdx.x / 32] = own;
  __syncthreads();
  float all = Combine::nothing;
  for (int warp = 0; warp < blockDim.x / 32; ++warp) all = combine(all, space[warp]);
  return all;
}

// Two packs a thread at least where the row has them, since barriers cost more with every warp.
inline unsigned row_block(std::int64_t packs) {
  unsigned threads = 32;
  while (threads < largest_row_block && 2 * threads < packs) threads *= 2;
  return threads;
}

}  // namespace stepgate
