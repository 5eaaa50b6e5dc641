// SPDX-License-Identifier: MIT
#include <algorithm>

#include "device/cuda/step/sketch_on_device.h"
#include "kernels/launch.cuh"

namespace stepgate {
namespace {

constexpr int threads = 256;
constexpr int warp_lanes = 32;
constexpr int warps = threads / warp_lanes;
constexpr std::int64_t elements_of_a_thread = 8;
constexpr std::int64_t most_blocks = 264;
constexpr unsigned all_lanes = 0xffffffffU;

// The order of additions depends only on the number of elements, so equal gradients have equal
// sums.
template <class Number>
__global__ void __launch_bounds__(threads)
    sketch(const Number* from, std::int64_t first, std::int64_t elements, float* sums) {
  constexpr int count = sketch_numbers;
  float own[count] = {};
  const std::int64_t together = static_cast<std::int64_t>(gridDim.x) * threads;
  for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * threads + threadIdx.x; i < elements;
       i += together) {
    const float value = to_float(from[i]);
    const std::uint64_t signs = signs_of(first + i);
    own[0] += value * value;
#pragma unroll
    for (int k = 0; k + 1 < count; ++k) own[1 + k] += (signs >> k & 1U) != 0 ? value : -value;
  }
  __shared__ float of_warps[warps][count];
  const int lane = threadIdx.x % warp_lanes;
#pragma unroll
  for (int k = 0; k < count; ++k) {
    float sum = own[k];
    for (int step = warp_lanes / 2; step > 0; step /= 2)
      sum += __shfl_xor_sync(all_lanes, sum, step);
    if (lane == 0) of_warps[threadIdx.x / warp_lanes][k] = sum;
  }
  __syncthreads();
  if (threadIdx.x >= count) return;
  float sum = 0;
  for (int warp = 0; warp < warps; ++warp) sum += of_warps[warp][threadIdx.x];
  sums[static_cast<std::int64_t>(blockIdx.x) * count + threadIdx.x] = sum;
}

}  // namespace

std::int64_t sketch_blocks(std::int64_t elements) {
  return std::clamp<std::int64_t>(ceiling_quotient(elements, threads * elements_of_a_thread), 1,
                                  most_blocks);
}

cudaError_t sketch_on_device(const GradientPart& part, const void* operand, DType dtype,
                             float* sums, cudaStream_t stream) {
  const auto blocks = static_cast<unsigned>(sketch_blocks(part.elements));
  with_storage(dtype, [&](auto zero) {
    const auto* const from = static_cast<const decltype(zero)*>(operand) + part.in_operand;
    sketch<<<blocks, threads, 0, stream>>>(from, part.first, part.elements, sums);
  });
  return cudaGetLastError();
}

}  // namespace stepgate
