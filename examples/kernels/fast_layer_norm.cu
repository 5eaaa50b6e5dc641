// SPDX-License-Identifier: MIT
// layer_norm as a library for stepgate, one warp a row: it reads each number once, in packs, and
// keeps the row in registers. It supports the rows that fit there; layer_norm.cu is right for every
// shape, and slower.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>
#include <stepgate/kernel.h>

#include <cstdio>

STEPGATE_KERNEL_LIBRARY();

namespace {

constexpr int lanes = 32, rows_a_block = 4;
constexpr int most_row_bytes = 8192;  // 256 bytes a lane are 64 registers

// One load or store of a lane.
template <class Number, int bytes>
struct alignas(bytes) Pack {
  static constexpr int count = bytes / sizeof(Number);
  Number number[count];
};

__device__ float sum_of_warp(float value) {
  for (int step = lanes / 2; step > 0; step /= 2) value += __shfl_xor_sync(~0u, value, step);
  return value;
}

struct State {
  long long rows;
  int columns;
  float epsilon;
};

template <class Number, int pack_bytes, int packs>
__global__ void __launch_bounds__(lanes* rows_a_block)
    norm_rows(const Number* x, const Number* weight, const Number* bias, Number* y,
              float2* statistics, State shape) {
  using Packed = Pack<Number, pack_bytes>;
  const long long row = blockIdx.x * static_cast<long long>(rows_a_block) + threadIdx.x / lanes;
  if (row >= shape.rows) return;  // the whole warp
  const int lane = threadIdx.x % lanes, in_row = shape.columns / Packed::count;
  const auto columns = static_cast<float>(shape.columns);
  Packed held[packs];
  float sum = 0;
#pragma unroll
  for (int i = 0; i < packs; ++i) {
    if (lane + lanes * i >= in_row) break;
    held[i] = reinterpret_cast<const Packed*>(x + row * shape.columns)[lane + lanes * i];
    for (const Number number : held[i].number) sum += static_cast<float>(number);
  }
  const float mean = sum_of_warp(sum) / columns;
  // Squares of distances from the mean: a mean of squares less the square of the mean would lose
  // the digits of rows that are far from 0.
  float squares = 0;
#pragma unroll
  for (int i = 0; i < packs; ++i) {
    if (lane + lanes * i >= in_row) break;
    for (const Number number : held[i].number) {
      const float distance = static_cast<float>(number) - mean;
      squares += distance * distance;
    }
  }
  const float scale = rsqrtf(sum_of_warp(squares) / columns + shape.epsilon);
#pragma unroll
  for (int i = 0; i < packs; ++i) {
    const int at = lane + lanes * i;
    if (at >= in_row) break;
    const Packed weights = reinterpret_cast<const Packed*>(weight)[at];
    const Packed biases = reinterpret_cast<const Packed*>(bias)[at];
    Packed result;
#pragma unroll
    for (int k = 0; k < Packed::count; ++k) {
      const float normed = (static_cast<float>(held[i].number[k]) - mean) * scale;
      result.number[k] = static_cast<Number>(normed * static_cast<float>(weights.number[k]) +
                                             static_cast<float>(biases.number[k]));
    }
    reinterpret_cast<Packed*>(y + row * shape.columns)[at] = result;
  }
  if (lane == 0) statistics[row] = make_float2(mean, scale);
}

template <class Number, int pack_bytes, int lane_bytes>
int enqueue(const State& shape, void* const* at, void* stream) {
  const auto blocks = static_cast<unsigned>((shape.rows + rows_a_block - 1) / rows_a_block);
  norm_rows<Number, pack_bytes, lane_bytes / pack_bytes>
      <<<blocks, lanes * rows_a_block, 0, static_cast<cudaStream_t>(stream)>>>(
          static_cast<const Number*>(at[0]), static_cast<const Number*>(at[1]),
          static_cast<const Number*>(at[2]), static_cast<Number*>(at[3]),
          static_cast<float2*>(at[4]), shape);
  return cudaGetLastError();
}

// The fewer registers a lane holds, the more warps wait for memory at the same time.
template <class Number, int pack_bytes>
int enqueue_for_row(const State& shape, void* const* at, void* stream) {
  const int row_bytes = shape.columns * static_cast<int>(sizeof(Number));
  if (row_bytes <= 32 * lanes) return enqueue<Number, pack_bytes, 32>(shape, at, stream);
  if (row_bytes <= 64 * lanes) return enqueue<Number, pack_bytes, 64>(shape, at, stream);
  if (row_bytes <= 128 * lanes) return enqueue<Number, pack_bytes, 128>(shape, at, stream);
  return enqueue<Number, pack_bytes, most_row_bytes / lanes>(shape, at, stream);
}

// Every row begins where all four buffers are aligned to 16 bytes, or else to 8, as stepgate
// promises of any buffer.
template <class Number>
int launch(void* state, void* const* at, void*, void* stream) {
  const State& shape = *static_cast<const State*>(state);
  size_t places = static_cast<size_t>(shape.columns) * sizeof(Number);
  for (int operand = 0; operand < 4; ++operand) places |= reinterpret_cast<size_t>(at[operand]);
  return places % 16 == 0 ? enqueue_for_row<Number, 16>(shape, at, stream)
                          : enqueue_for_row<Number, 8>(shape, at, stream);
}

}  // namespace

extern "C" STEPGATE_EXPORT int layer_norm(const stepgate_request* request,
                                          stepgate_prepared* prepared) {
  const bool is_16_bit = request->dtype == STEPGATE_BF16 || request->dtype == STEPGATE_FP16;
  const int64_t bytes = is_16_bit ? 2 : 4;
  const int64_t rows = stepgate_dimension_of(request, "rows", 0);
  const int64_t columns = stepgate_dimension_of(request, "columns", 0);
  if (columns < 1 || columns * bytes % 8 != 0 || columns * bytes > most_row_bytes) {
    snprintf(prepared->message, sizeof prepared->message,
             "columns must be a multiple of %d and at most %d", static_cast<int>(8 / bytes),
             static_cast<int>(most_row_bytes / bytes));
    return STEPGATE_UNSUPPORTED;
  }
  if (rows < 1 || rows > 0x7fffffff) {
    snprintf(prepared->message, sizeof prepared->message, "rows must be below 2^31");
    return STEPGATE_UNSUPPORTED;
  }
  prepared->state = new State{rows, static_cast<int>(columns),
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
