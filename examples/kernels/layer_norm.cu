// SPDX-License-Identifier: MIT
// layer_norm as a library for stepgate, one block a row: right for every shape, dtype and
// alignment, and slower than stepgate's own.
//
//   nvcc -O3 -shared -Xcompiler -fPIC -arch=native -I INCLUDE layer_norm.cu -o libmine.so
//   stepgate kernel check libmine.so layer_norm
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>
#include <stepgate/kernel.h>

#include <cstdio>

STEPGATE_KERNEL_LIBRARY();

namespace {

constexpr int threads = 256;

__device__ float load(const float* at) {
  return *at;
}
__device__ float load(const __nv_bfloat16* at) {
  return __bfloat162float(*at);
}
__device__ float load(const __half* at) {
  return __half2float(*at);
}
__device__ void store(float* at, float value) {
  *at = value;
}
__device__ void store(__nv_bfloat16* at, float value) {
  *at = __float2bfloat16_rn(value);
}
__device__ void store(__half* at, float value) {
  *at = __float2half_rn(value);
}

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

template <class Number>
__global__ void __launch_bounds__(threads)
    norm_row(const Number* x, const Number* weight, const Number* bias, Number* y,
             float* statistics, int columns, float epsilon) {
  const long long row = blockIdx.x;
  x += row * columns;
  y += row * columns;
  float sum = 0;
  for (int i = threadIdx.x; i < columns; i += threads) sum += load(x + i);
  const float mean = block_sum(sum) / static_cast<float>(columns);
  float squares = 0;
  for (int i = threadIdx.x; i < columns; i += threads) {
    const float distance = load(x + i) - mean;
    squares += distance * distance;
  }
  const float scale = rsqrtf(block_sum(squares) / static_cast<float>(columns) + epsilon);
  for (int i = threadIdx.x; i < columns; i += threads)
    store(y + i, (load(x + i) - mean) * scale * load(weight + i) + load(bias + i));
  if (threadIdx.x == 0) {
    statistics[2 * row] = mean;
    statistics[2 * row + 1] = scale;
  }
}

struct State {
  unsigned rows;
  int columns;
  float epsilon;
};

template <class Number>
int launch(void* state, void* const* at, void*, void* stream) {
  const State& shape = *static_cast<const State*>(state);
  norm_row<<<shape.rows, threads, 0, static_cast<cudaStream_t>(stream)>>>(
      static_cast<const Number*>(at[0]), static_cast<const Number*>(at[1]),
      static_cast<const Number*>(at[2]), static_cast<Number*>(at[3]), static_cast<float*>(at[4]),
      shape.columns, shape.epsilon);
  return cudaGetLastError();
}

}  // namespace

extern "C" STEPGATE_EXPORT int layer_norm(const stepgate_request* request,
                                          stepgate_prepared* prepared) {
  const int64_t rows = stepgate_dimension_of(request, "rows", 0);
  const int64_t columns = stepgate_dimension_of(request, "columns", 0);
  if (rows < 1 || rows > 0x7fffffff || columns < 1 || columns > 0x7fffffff) {
    snprintf(prepared->message, sizeof prepared->message, "rows and columns must be below 2^31");
    return STEPGATE_UNSUPPORTED;
  }
  prepared->state = new State{static_cast<unsigned>(rows), static_cast<int>(columns),
                              static_cast<float>(stepgate_attribute_of(request, "epsilon", 0))};
  prepared->release = [](void* state) { delete static_cast<State*>(state); };
  switch (request->dtype) {
    case STEPGATE_FP32:
    case STEPGATE_TF32:
      prepared->launch = launch<float>;
      return STEPGATE_OK;
    case STEPGATE_BF16:
      prepared->launch = launch<__nv_bfloat16>;
      return STEPGATE_OK;
    case STEPGATE_FP16:
      prepared->launch = launch<__half>;
      return STEPGATE_OK;
    default:
      return STEPGATE_UNSUPPORTED;
  }
}
