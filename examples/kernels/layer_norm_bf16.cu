// SPDX-License-Identifier: MIT
// layer_norm as a cubin for stepgate: a kernel and nothing else, which layer_norm_bf16.toml
// launches with a block for each row, and with shared memory for the row.
//
//   nvcc -O3 -cubin -arch=sm_90 layer_norm_bf16.cu
//   stepgate kernel check layer_norm_bf16.toml layer_norm
#include <cuda_bf16.h>

constexpr int threads = 128;

// The sum over the block, in every thread.
__device__ float block_sum(float value) {
  __shared__ float part[threads / 32];
  for (int step = 16; step > 0; step /= 2) value += __shfl_xor_sync(~0u, value, step);
  __syncthreads();
  if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = value;
  __syncthreads();
  float sum = 0;
  for (float each : part) sum += each;
  return sum;
}

extern "C" __global__ void __launch_bounds__(threads)
    layer_norm_bf16(const __nv_bfloat16* x, const __nv_bfloat16* weight, const __nv_bfloat16* bias,
                    __nv_bfloat16* y, float* statistics, int columns, float epsilon) {
  extern __shared__ float row[];
  const long long begin = static_cast<long long>(blockIdx.x) * columns;
  float sum = 0;
  for (int i = threadIdx.x; i < columns; i += threads) {
    row[i] = __bfloat162float(x[begin + i]);
    sum += row[i];
  }
  const float mean = block_sum(sum) / static_cast<float>(columns);
  float squares = 0;
  for (int i = threadIdx.x; i < columns; i += threads) squares += (row[i] - mean) * (row[i] - mean);
  const float scale = rsqrtf(block_sum(squares) / static_cast<float>(columns) + epsilon);
  for (int i = threadIdx.x; i < columns; i += threads) {
    y[begin + i] = __float2bfloat16_rn((row[i] - mean) * scale * __bfloat162float(weight[i]) +
                                       __bfloat162float(bias[i]));
  }
  if (threadIdx.x == 0) {
    statistics[2 * blockIdx.x] = mean;
    statistics[2 * blockIdx.x + 1] = scale;
  }
}
