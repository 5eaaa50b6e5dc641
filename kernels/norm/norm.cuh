// SPDX-License-Identifier: MIT
// The forward kernels of layer_norm and rms_norm, with and without a residual. They read a row from
// memory once. A warp holds a short row in registers; a block processes a long row and finds it in
// the L1 cache at the second pass.
#pragma once

#include "kernels/launch.cuh"
#include "kernels/norm/norm.h"
#include "kernels/packed_numbers.cuh"

namespace stepgate {

// The operands of a residual. biased: the branch still needs the bias of the GEMM that computed it;
// plain: that GEMM has no bias.
enum class Residual { none, plain, biased };

// The operands of a launch; operands that a kernel does not have are null.
template <class Number>
struct NormCall {
  const Number* x = nullptr;
  const Number* branch = nullptr;       // of a residual norm
  const Number* branch_bias = nullptr;  // of Residual::biased
  const Number* weight = nullptr;
  const Number* bias = nullptr;  // of a layer norm
  Number* sum = nullptr;         // of a residual norm; may be x
  Number* y = nullptr;
  float* statistics = nullptr;
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  float epsilon = 0;
};

constexpr int norm_block_threads = 1024;  // at most

// Returns the sum over the warp to every lane, by one fixed tree.
__device__ __forceinline__ float sum_over_warp(float value) {
#pragma unroll
  for (int distance = 16; distance > 0; distance /= 2) {
    value += __shfl_xor_sync(0xffffffffu, value, distance);
  }
  return value;
}

// Returns the sum over a block of whole warps to every thread. Each sum needs its own `of_warp`.
__device__ __forceinline__ float sum_over_block(float value, float* of_warp) {
  value = sum_over_warp(value);
  if (threadIdx.x % 32 == 0) of_warp[threadIdx.x / 32] = value;
  __syncthreads();
  float sum = 0.0f;
  for (int warp = 0; warp < blockDim.x / 32; ++warp) sum += of_warp[warp];
  return sum;
}

// Returns a + b rounded to odd: if the sum is not a float, the one of its two neighbours whose last
// bit is set. Rounding that to a narrower format gives the same as rounding the exact sum (Boldo
// and Melquiond: Emulation of FMA and correctly rounded sums, 2008).
__device__ __forceinline__ float sum_to_odd(float a, float b) {
  const float below = __fadd_rd(a, b), above = __fadd_ru(a, b);
  return (__float_as_uint(below) & 1u) != 0 ? below : above;
}

// Returns a + b + c for floats that may cancel: the rounding error of the first sum is added at the
// end (Knuth's TwoSum).
__device__ __forceinline__ float sum_of_floats(float a, float b, float c) {
  const float sum = __fadd_rn(b, c);
  const float of_c = __fsub_rn(sum, b);
  const float rest = __fadd_rn(__fsub_rn(b, __fsub_rn(sum, of_c)), __fsub_rn(c, of_c));
  return __fadd_rn(__fadd_rn(a, sum), rest);
}

// Returns the sum of three numbers such that rounding it to Number rounds only once. A norm
// amplifies a sum that is rounded to the wrong neighbour.
template <class Number>
__device__ __forceinline__ float sum_of_three(float a, float b, float c) {
  if constexpr (sizeof(Number) == sizeof(float)) return sum_of_floats(a, b, c);
  return sum_to_odd(a, sum_to_odd(b, c));
}

template <class Number>
__device__ __forceinline__ float sum_of_two(float a, float b) {
  if constexpr (sizeof(Number) == sizeof(float)) return __fadd_rn(a, b);
  return sum_to_odd(a, b);
}

// Returns the numbers to normalise: x, or x + branch rounded to storage. The latter is also stored
// in call.sum.
template <Residual residual, int count, class Number>
__device__ __forceinline__ Pack<Number, count> take(const NormCall<Number>& call, std::int64_t row,
                                                    std::int64_t column) {
  const std::int64_t index = row * call.columns + column;
  auto pack = load<count>(call.x, index);
  if constexpr (residual != Residual::none) {
    const auto branch = load<count>(call.branch, index);
    float sums[count];
    if constexpr (residual == Residual::biased) {
      const auto biases = load<count>(call.branch_bias, column);
#pragma unroll
      for (int i = 0; i < count; ++i) {
        sums[i] =
            sum_of_three<Number>(number_of(pack, i), number_of(branch, i), number_of(biases, i));
      }
    } else {
#pragma unroll
      for (int i = 0; i < count; ++i)
        sums[i] = sum_of_two<Number>(number_of(pack, i), number_of(branch, i));
    }
    pack = packed<Number>(sums);
    store<count>(call.sum, index, pack);
  }
  return pack;
}

template <int count, class Number>
__device__ __forceinline__ float sum_of(const Pack<Number, count>& pack) {
  float sum = 0.0f;
#pragma unroll
  for (int i = 0; i < count; ++i) sum += number_of(pack, i);
  return sum;
}

template <int count, class Number>
__device__ __forceinline__ float squares_of(const Pack<Number, count>& pack, float mean) {
  float sum = 0.0f;
#pragma unroll
  for (int i = 0; i < count; ++i) {
    const float difference = number_of(pack, i) - mean;
    sum = fmaf(difference, difference, sum);
  }
  return sum;
}

template <class Number>
__device__ __forceinline__ float scale_of(const NormCall<Number>& call, float squares) {
  return rsqrtf(squares / static_cast<float>(call.columns) + call.epsilon);
}

template <NormKind kind, int count, class Number>
__device__ __forceinline__ void write_normed(const NormCall<Number>& call, std::int64_t row,
                                             std::int64_t column, Pack<Number, count> pack,
                                             float mean, float scale) {
  const auto weights = load<count>(call.weight, column);
  Pack<Number, count> biases;
  if constexpr (kind == NormKind::layer) biases = load<count>(call.bias, column);
#pragma unroll
  for (int i = 0; i < count; ++i) {
    const float normalised = (number_of(pack, i) - mean) * scale;
    float y = normalised * number_of(weights, i);
    if constexpr (kind == NormKind::layer) y += number_of(biases, i);
    pack.values[i] = from_float<Number>(y);
  }
  store<count>(call.y, row * call.columns + column, pack);
}

template <NormKind kind>
__device__ __forceinline__ void write_statistics(float* statistics, std::int64_t row, float mean,
                                                 float scale) {
  constexpr std::int64_t width = statistics_of(kind);
  if constexpr (kind == NormKind::layer) statistics[row * width] = mean;
  statistics[row * width + width - 1] = scale;
}

constexpr int norm_warps = 4;

// One warp processes a row of up to `held` packs per lane. Blocks are small, since a new block
// starts only when all warps of an old one have ended.
template <NormKind kind, Residual residual, int held, int count, class Number>
__global__ void __launch_bounds__(norm_warps * 32) norm_short_rows(const NormCall<Number> call) {
  const std::int64_t row = static_cast<std::int64_t>(blockIdx.x) * norm_warps + threadIdx.x / 32;
  if (row >= call.rows) return;
  const int packs = static_cast<int>(call.columns / count);
  const int lane = threadIdx.x % 32;
  Pack<Number, count> own[held];
#pragma unroll
  for (int i = 0; i < held; ++i) {
    const int pack = lane + 32 * i;
    if (pack < packs) own[i] = take<residual, count>(call, row, pack * count);
  }
  float mean = 0.0f;
  if constexpr (kind == NormKind::layer) {
#pragma unroll
    for (int i = 0; i < held; ++i) {
      if (lane + 32 * i < packs) mean += sum_of(own[i]);
    }
    mean = sum_over_warp(mean) / static_cast<float>(call.columns);
  }
  float squares = 0.0f;
#pragma unroll
  for (int i = 0; i < held; ++i) {
    if (lane + 32 * i < packs) squares += squares_of(own[i], mean);
  }
  const float scale = scale_of(call, sum_over_warp(squares));
  if (lane == 0) write_statistics<kind>(call.statistics, row, mean, scale);
#pragma unroll
  for (int i = 0; i < held; ++i) {
    const int pack = lane + 32 * i;
    if (pack < packs) write_normed<kind, count>(call, row, pack * count, own[i], mean, scale);
  }
}

// One block processes a row of any length. A thread reads only packs of the sum that it wrote
// itself.
template <NormKind kind, Residual residual, int count, class Number>
__global__ void __launch_bounds__(norm_block_threads) norm_long_rows(const NormCall<Number> call) {
  __shared__ float sums[norm_block_threads / 32];
  __shared__ float squares_of_warp[norm_block_threads / 32];
  const std::int64_t row = blockIdx.x;
  const std::int64_t begin = row * call.columns;
  const Number* taken = residual == Residual::none ? call.x : call.sum;
  float sum = 0.0f, squares = 0.0f;
#pragma unroll 4
  for (std::int64_t c = threadIdx.x * count; c < call.columns; c += blockDim.x * count) {
    const auto pack = take<residual, count>(call, row, c);
    if constexpr (kind == NormKind::layer) sum += sum_of(pack);
    if constexpr (kind == NormKind::rms) squares += squares_of(pack, 0.0f);
  }
  float mean = 0.0f;
  if constexpr (kind == NormKind::layer) {
    mean = sum_over_block(sum, sums) / static_cast<float>(call.columns);
#pragma unroll 4
    for (std::int64_t c = threadIdx.x * count; c < call.columns; c += blockDim.x * count) {
      squares += squares_of(load<count>(taken, begin + c), mean);
    }
  }
  const float scale = scale_of(call, sum_over_block(squares, squares_of_warp));
  if (threadIdx.x == 0) write_statistics<kind>(call.statistics, row, mean, scale);
#pragma unroll 4
  for (std::int64_t c = threadIdx.x * count; c < call.columns; c += blockDim.x * count) {
    write_normed<kind, count>(call, row, c, load<count>(taken, begin + c), mean, scale);
  }
}

// A thread gets at least four packs where possible, since a barrier costs more with every warp.
inline unsigned norm_threads(std::int64_t packs) {
  unsigned threads = 32;
  while (threads < norm_block_threads && 4 * threads < packs) threads *= 2;
  return threads;
}

template <NormKind kind, Residual residual, class Number>
void launch_norm(std::string_view name, const NormCall<Number>& call, cudaStream_t stream) {
  constexpr int count = access_bytes / sizeof(Number);
  // A null operand counts as aligned.
  const bool in_packs =
      call.columns % count == 0 && aligned_to_access(call.x, call.branch, call.branch_bias,
                                                     call.weight, call.bias, call.sum, call.y);
  const std::int64_t packs = in_packs ? call.columns / count : call.columns;
  const auto rows = static_cast<unsigned>(call.rows);
  const auto blocks = static_cast<unsigned>(ceiling_quotient(call.rows, norm_warps));
  if (in_packs && packs <= 4 * 32) {
    norm_short_rows<kind, residual, 4, count><<<blocks, norm_warps * 32, 0, stream>>>(call);
  } else if (in_packs && packs <= 8 * 32) {
    norm_short_rows<kind, residual, 8, count><<<blocks, norm_warps * 32, 0, stream>>>(call);
  } else if (in_packs) {
    norm_long_rows<kind, residual, count><<<rows, norm_threads(packs), 0, stream>>>(call);
  } else {
    norm_long_rows<kind, residual, 1><<<rows, norm_threads(packs), 0, stream>>>(call);
  }
  check_launch(name);
}

// The launcher of the kernel of that kind; the operands are in the order of NormCall's members.
template <NormKind kind, Residual residual>
Launch prepare_norm(std::string_view name, const MatrixShape& shape, DType dtype,
                    const NormAttributes& attributes) {
  const auto epsilon = static_cast<float>(attributes.epsilon);
  return with_storage(dtype, [&](auto zero) -> Launch {
    using Number = decltype(zero);
    return [=](void* const* buffers, cudaStream_t stream) {
      NormCall<Number> call{.rows = shape.rows, .columns = shape.columns, .epsilon = epsilon};
      const auto next = [&buffers] { return static_cast<Number*>(*buffers++); };
      call.x = next();
      if (residual != Residual::none) call.branch = next();
      if (residual == Residual::biased) call.branch_bias = next();
      call.weight = next();
      if (kind == NormKind::layer) call.bias = next();
      if (residual != Residual::none) call.sum = next();
      call.y = next();
      call.statistics = static_cast<float*>(*buffers);
      launch_norm<kind, residual>(name, call, stream);
    };
  });
}

}  // namespace stepgate
