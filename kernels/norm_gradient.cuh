// SPDX-License-Identifier: MIT
// The kernels of layer_norm_gradient and rms_norm_gradient: one pass over the rows, which keeps the
// sums over rows (of the weight's and the bias's gradients) in registers until a part ends.
#pragma once

#include "kernels/launch.cuh"
#include "kernels/norm.h"
#include "kernels/packed_numbers.cuh"

namespace stepgate {

template <class Number>
struct NormGradientCall {
  const Number* d_y;
  const Number* x;
  const Number* weight;
  const float* statistics;
  Number* d_x;
  float* partials;
  std::int64_t rows;
  std::int64_t columns;
  std::int64_t parts;
  bool accumulate;
};

// --- rows ----------------------------------------------------------------------------------------

constexpr int gradient_block_threads = 768;  // at most, which leaves a thread 80 registers
constexpr int usual_block_threads = 256;     // three blocks a multiprocessor

struct RowStatistics {
  float mean, scale;
};

template <NormKind kind>
__device__ __forceinline__ RowStatistics statistics_at(const float* statistics, std::int64_t row) {
  if constexpr (kind == NormKind::rms) return {0.0f, statistics[row]};
  return {statistics[2 * row], statistics[2 * row + 1]};
}

// Sums over a row: of g = d_y weight, and of g times the normalised x.
struct RowSums {
  float sum, projection;
};

__device__ __forceinline__ RowSums over_warp(RowSums own) {
#pragma unroll
  for (int distance = 16; distance > 0; distance /= 2) {
    own.sum += __shfl_xor_sync(0xffffffffu, own.sum, distance);
    own.projection += __shfl_xor_sync(0xffffffffu, own.projection, distance);
  }
  return own;
}

// Every thread gets the sums over the `warps` warps of its group, which meet at barrier `barrier`.
// `of_warp` is the group's; a sum takes another one than the sum before, so that one barrier a sum
// suffices.
__device__ __forceinline__ RowSums over_group(RowSums own, RowSums* of_warp, int warp, int warps,
                                              int barrier) {
  own = over_warp(own);
  if (warps == 1) return own;
  if (threadIdx.x % 32 == 0) of_warp[warp] = own;
  asm volatile("bar.sync %0, %1;" ::"r"(barrier), "r"(warps * 32) : "memory");
  RowSums all{0.0f, 0.0f};
  for (int i = 0; i < warps; ++i) {
    all.sum += of_warp[i].sum;
    all.projection += of_warp[i].projection;
  }
  return all;
}

// d_x = scale (g - mean of g - n mean of (g n)) with n the normalised x; rms without the mean of g.
// The product g is rounded by itself wherever it is taken: what is left of it behind its mean may
// be small.
__device__ __forceinline__ float weighed(float d_y, float weight) {
  return __fmul_rn(d_y, weight);
}

// --- kernels -------------------------------------------------------------------------------------

// What a thread reads of a row.
template <int count, class Number>
struct RowPack {
  Pack<Number, count> d_y, x;
  RowStatistics statistics;
};

template <NormKind kind, int count, class Number>
__device__ __forceinline__ RowPack<count, Number> read_row(const NormGradientCall<Number>& call,
                                                           std::int64_t row, std::int64_t column) {
  RowPack<count, Number> read{};
  if (row >= call.rows) return read;
  read.statistics = statistics_at<kind>(call.statistics, row);
  if (column >= call.columns) return read;
  read.d_y = load<count>(call.d_y, row * call.columns + column);
  read.x = load<count>(call.x, row * call.columns + column);
  return read;
}

// Adds up what the groups of a block have summed, in their order, and writes it. `of_groups` is
// shared memory for `span` columns of each group.
template <int count>
__device__ __forceinline__ void write_partials(float* partials, const float (&own)[count],
                                               float* of_groups, int group_threads,
                                               std::int64_t columns) {
  __syncthreads();
#pragma unroll
  for (int i = 0; i < count; ++i) of_groups[threadIdx.x * count + i] = own[i];
  __syncthreads();
  const int span = group_threads * count;
  for (int c = threadIdx.x; c < columns; c += blockDim.x) {
    float sum = 0.0f;
    for (int i = c; i < blockDim.x * count; i += span) sum += of_groups[i];
    partials[c] = sum;
  }
}

// A block takes the rows of a part, a group of whole warps a row, a thread one pack of each of its
// group's rows. The next row is on its way while one is worked on.
template <NormKind kind, int count, class Number>
__global__ void __launch_bounds__(gradient_block_threads)
    norm_gradient_rows(const NormGradientCall<Number> call, int group_threads) {
  __shared__ RowSums of_warps[2][gradient_block_threads / 32];
  __shared__ float of_groups[gradient_block_threads * count];
  const int group = threadIdx.x / group_threads;
  const int groups = blockDim.x / group_threads;
  const int thread = threadIdx.x % group_threads;
  const int warps = group_threads / 32;
  const std::int64_t column = thread * count;
  const std::int64_t step = groups * call.parts;
  const float per_column = 1.0f / static_cast<float>(call.columns);

  Pack<Number, count> weights{};
  if (column < call.columns) weights = load<count>(call.weight, column);
  float d_weight[count] = {}, d_bias[count] = {};
  std::int64_t row = blockIdx.x + group * call.parts;
  auto next = read_row<kind, count>(call, row, column);
  for (int turn = 0; row < call.rows; row += step, turn ^= 1) {
    auto own = next;
    next = read_row<kind, count>(call, row + step, column);
    const std::int64_t index = row * call.columns + column;
    Pack<Number, count> d_x{};
    if (call.accumulate && column < call.columns) d_x = load<count>(call.d_x, index);

    const auto [mean, scale] = own.statistics;
    RowSums sums{0.0f, 0.0f};
#pragma unroll
    for (int i = 0; i < count; ++i) {
      const float d_y = number_of(own.d_y, i);
      const float normalised = (number_of(own.x, i) - mean) * scale;
      const float g = weighed(d_y, number_of(weights, i));
      sums.sum += g;
      sums.projection = fmaf(g, normalised, sums.projection);
      d_weight[i] = fmaf(d_y, normalised, d_weight[i]);
      d_bias[i] += d_y;
    }
    derive_again(weights);
    derive_again(own.d_y);
    derive_again(own.x);
    sums = over_group(sums, of_warps[turn] + group * warps, thread / 32, warps, 1 + group);
    const float mean_of_g = kind == NormKind::layer ? sums.sum * per_column : 0.0f;
    const float projection = sums.projection * per_column;
#pragma unroll
    for (int i = 0; i < count; ++i) {
      const float normalised = (number_of(own.x, i) - mean) * scale;
      const float g = weighed(number_of(own.d_y, i), number_of(weights, i));
      const float inner = (g - mean_of_g) - normalised * projection;
      d_x.values[i] = from_float<Number>(fmaf(scale, inner, number_of(d_x, i)));
    }
    if (column < call.columns) store<count>(call.d_x, index, d_x);
  }

  float* partials = call.partials + blockIdx.x * parameters_of(kind) * call.columns;
  write_partials(partials, d_weight, of_groups, group_threads, call.columns);
  if constexpr (kind == NormKind::layer) {
    write_partials(partials + call.columns, d_bias, of_groups, group_threads, call.columns);
  }
}

// A part whose rows are too long for one pack a thread or do not move in packs: a block takes a row
// at a time, reads it twice, and sums in the partials themselves, of which a thread comes back to
// its own only.
template <NormKind kind, int count, class Number>
__global__ void __launch_bounds__(gradient_block_threads)
    norm_gradient_any(const NormGradientCall<Number> call) {
  __shared__ RowSums of_warps[2][gradient_block_threads / 32];
  const int warps = blockDim.x / 32;
  float* d_weight = call.partials + blockIdx.x * parameters_of(kind) * call.columns;
  float* d_bias = d_weight + call.columns;
  const std::int64_t first = threadIdx.x * count, stride = blockDim.x * count;
  const float per_column = 1.0f / static_cast<float>(call.columns);
  for (std::int64_t c = first; c < call.columns; c += stride) {
    store<count>(d_weight, c, Pack<float, count>{});
    if constexpr (kind == NormKind::layer) store<count>(d_bias, c, Pack<float, count>{});
  }
  int turn = 0;
  for (std::int64_t row = blockIdx.x; row < call.rows; row += call.parts, turn ^= 1) {
    const auto [mean, scale] = statistics_at<kind>(call.statistics, row);
    RowSums sums{0.0f, 0.0f};
#pragma unroll 2
    for (std::int64_t c = first; c < call.columns; c += stride) {
      const auto read = read_row<kind, count>(call, row, c);
      const auto weights = load<count>(call.weight, c);
#pragma unroll
      for (int i = 0; i < count; ++i) {
        const float g = weighed(to_float(read.d_y.values[i]), to_float(weights.values[i]));
        sums.sum += g;
        sums.projection = fmaf(g, (to_float(read.x.values[i]) - mean) * scale, sums.projection);
      }
    }
    sums = over_group(sums, of_warps[turn], threadIdx.x / 32, warps, 1);
    const float mean_of_g = kind == NormKind::layer ? sums.sum * per_column : 0.0f;
    const float projection = sums.projection * per_column;
    for (std::int64_t c = first; c < call.columns; c += stride) {
      const auto read = read_row<kind, count>(call, row, c);
      const auto weights = load<count>(call.weight, c);
      auto weight_sums = load<count>(d_weight, c);
      Pack<float, count> bias_sums{};
      if constexpr (kind == NormKind::layer) bias_sums = load<count>(d_bias, c);
      Pack<Number, count> d_x{};
      if (call.accumulate) d_x = load<count>(call.d_x, row * call.columns + c);
#pragma unroll
      for (int i = 0; i < count; ++i) {
        const float d_y = to_float(read.d_y.values[i]);
        const float normalised = (to_float(read.x.values[i]) - mean) * scale;
        const float inner =
            (weighed(d_y, to_float(weights.values[i])) - mean_of_g) - normalised * projection;
        d_x.values[i] = from_float<Number>(fmaf(scale, inner, to_float(d_x.values[i])));
        weight_sums.values[i] = fmaf(d_y, normalised, weight_sums.values[i]);
        bias_sums.values[i] += d_y;
      }
      store<count>(call.d_x, row * call.columns + c, d_x);
      store<count>(d_weight, c, weight_sums);
      if constexpr (kind == NormKind::layer) store<count>(d_bias, c, bias_sums);
    }
  }
}

// --- launcher ------------------------------------------------------------------------------------

constexpr int whole_warps(std::int64_t threads) {
  return static_cast<int>(ceiling_quotient(threads, 32) * 32);
}

template <NormKind kind, class Number>
void launch_norm_gradient(std::string_view name, const NormGradientCall<Number>& call,
                          cudaStream_t stream) {
  constexpr int count = access_bytes / sizeof(Number);
  const auto parts = static_cast<unsigned>(call.parts);
  const bool in_packs =
      call.columns % count == 0 && aligned_to_access(call.d_y, call.x, call.weight, call.d_x);
  const std::int64_t packs = in_packs ? call.columns / count : call.columns;
  if (in_packs && packs <= gradient_block_threads) {
    const int group_threads = whole_warps(packs);
    const std::int64_t rows_of_part = ceiling_quotient(call.rows, call.parts);
    std::int64_t groups = usual_block_threads / group_threads;
    if (groups < 1) groups = 1;
    if (groups > rows_of_part) groups = rows_of_part;
    const auto threads = static_cast<unsigned>(groups * group_threads);
    norm_gradient_rows<kind, count><<<parts, threads, 0, stream>>>(call, group_threads);
  } else if (in_packs && aligned_to_access(call.partials)) {
    norm_gradient_any<kind, count><<<parts, gradient_block_threads, 0, stream>>>(call);
  } else {
    const int threads =
        packs < gradient_block_threads ? whole_warps(packs) : gradient_block_threads;
    norm_gradient_any<kind, 1><<<parts, threads, 0, stream>>>(call);
  }
  check_launch(name);
}

// The launcher of the kernel of that kind.
template <NormKind kind>
Launch prepare_norm_gradient(std::string_view name, const KernelShape& shape, DType dtype,
                             const KernelScalars& scalars) {
  const bool accumulate = scalars[norm_gradient_scalar::accumulate] != 0;
  return with_storage(dtype, [&](auto zero) -> Launch {
    using Number = decltype(zero);
    return [=](void* const* buffers, cudaStream_t stream) {
      const NormGradientCall<Number> call{static_cast<const Number*>(buffers[0]),
                                          static_cast<const Number*>(buffers[1]),
                                          static_cast<const Number*>(buffers[2]),
                                          static_cast<const float*>(buffers[3]),
                                          static_cast<Number*>(buffers[4]),
                                          static_cast<float*>(buffers[5]),
                                          shape.rows,
                                          shape.columns,
                                          shape.depth,
                                          accumulate};
      launch_norm_gradient<kind>(name, call, stream);
    };
  });
}

}  // namespace stepgate
