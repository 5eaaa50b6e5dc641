// SPDX-License-Identifier: MIT
// The kernel of the norms' gradients for rows that fit in the registers of a few warps. It reads
// each row once. The next row is copied to shared memory while the current one is processed, and
// sums over rows stay in registers until the part ends.
#pragma once

#include <cuda_pipeline.h>

#include "kernels/launch.cuh"
#include "kernels/norm/norm.h"
#include "kernels/packed_numbers.cuh"

namespace stepgate {

// Parts that both kernels of layer_norm_gradient and rms_norm_gradient share: their operands, and
// the sums over a row.

template <class Number>
struct NormGradientCall {
  const Number* d_y;
  const Number* x;
  const Number* weight;
  const float* statistics;
  Number* d_x;
  float* partials;
  float* sums_d_x;  // [parts][columns]; null: not requested
  std::int64_t rows;
  std::int64_t columns;
  std::int64_t parts;
  float per_column;  // 1 / columns
  bool accumulate;
};

struct RowStatistics {
  float mean, scale;
};

template <NormKind kind>
__device__ __forceinline__ RowStatistics statistics_at(const float* statistics, std::int64_t row) {
  if constexpr (kind == NormKind::rms) return {0.0f, statistics[row]};
  return {statistics[2 * row], statistics[2 * row + 1]};
}

// The sums over a row of g = d_y weight, and of g times the normalised x.
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

// A barrier of so many threads. Its number is a compile-time constant, since the compiler would
// otherwise reserve all sixteen barriers of a block.
__device__ __forceinline__ void meet(int barrier, int threads) {
  switch (barrier) {
    case 1:
      asm volatile("bar.sync 1, %0;" ::"r"(threads) : "memory");
      return;
    case 2:
      asm volatile("bar.sync 2, %0;" ::"r"(threads) : "memory");
      return;
    case 3:
      asm volatile("bar.sync 3, %0;" ::"r"(threads) : "memory");
      return;
    default:
      asm volatile("bar.sync 4, %0;" ::"r"(threads) : "memory");
      return;
  }
}

// Returns the sums over the `warps` warps of a group to every thread. The warps synchronise at
// barrier `barrier`. Consecutive sums need different `of_warp` arrays, so that one barrier per sum
// suffices.
__device__ __forceinline__ RowSums over_group(RowSums own, RowSums* of_warp, int warp, int warps,
                                              int barrier) {
  own = over_warp(own);
  if (warps == 1) return own;
  if (threadIdx.x % 32 == 0) of_warp[warp] = own;
  meet(barrier, warps * 32);
  RowSums all{0.0f, 0.0f};
#pragma unroll 1  // the sums over rows need the registers
  for (int i = 0; i < warps; ++i) {
    all.sum += of_warp[i].sum;
    all.projection += of_warp[i].projection;
  }
  return all;
}

// d_x = scale (g - mean of g - n mean of (g n)) with n the normalised x; in rms without the mean of
// g. The product g is rounded the same way in both places, since the difference between g and its
// mean may be small.
__device__ __forceinline__ float weighed(float d_y, float weight) {
  return __fmul_rn(d_y, weight);
}

// Two blocks fit on a multiprocessor, with 128 registers per thread.
constexpr int gradient_warps = 8;
constexpr int gradient_threads = gradient_warps * 32;
constexpr int gradient_blocks = 2;

// Whether a thread also sums d_x over rows. The column sums then take registers, which limits the
// packs of a row that it may hold.
enum class SumsOfGradient { none, kept };

constexpr int most_held(SumsOfGradient sums) {
  return sums == SumsOfGradient::kept ? 3 : 4;
}

// One row for every group of a block: `held` packs per thread. A thread reads only packs that it
// copied itself, so that it waits for its own copies only.
template <int held, int count, class Number>
struct HeldRows {
  using Packed = Pack<Number, count>;
  Packed d_y[held][gradient_threads];
  Packed x[held][gradient_threads];
  Packed d_x[held][gradient_threads];
};

// One slot holds the row being processed, the other the row being copied.
constexpr int row_slots = 2;

// Shared memory of a block; each thread also has the packs of the weight for its columns.
template <int held, int count, class Number>
struct Held {
  HeldRows<held, count, Number> rows[row_slots];
  Pack<Number, count> weight[held][gradient_threads];
};

// The position of a thread in its group, which is the threads that share a row, and of the group in
// its block.
struct RowGroup {
  int thread, threads;  // of the group
  int group, groups;    // of the block

  __device__ explicit RowGroup(int group_threads)
      : thread(threadIdx.x % group_threads),
        threads(group_threads),
        group(threadIdx.x / group_threads),
        groups(gradient_threads / group_threads) {}

  template <int count>
  __device__ int column(int i) const {
    return (thread + i * threads) * count;
  }
};

// Starts the asynchronous copies of the thread's packs of a row, if there is such a row.
template <int held, int count, class Number>
__device__ __forceinline__ void send_for(const NormGradientCall<Number>& call, const RowGroup& own,
                                         std::int64_t row, HeldRows<held, count, Number>& slot) {
#pragma unroll
  for (int i = 0; i < held; ++i) {
    const int column = own.column<count>(i);
    if (row >= call.rows || column >= call.columns) continue;
    const std::int64_t index = row * call.columns + column;
    __pipeline_memcpy_async(&slot.d_y[i][threadIdx.x], call.d_y + index, access_bytes);
    __pipeline_memcpy_async(&slot.x[i][threadIdx.x], call.x + index, access_bytes);
    if (!call.accumulate) continue;
    __pipeline_memcpy_async(&slot.d_x[i][threadIdx.x], call.d_x + index, access_bytes);
  }
  __pipeline_commit();
}

// Loads a pack from shared memory. The load is volatile: a row's packs are loaded twice, and the
// assembler would otherwise try to keep them in registers, of which there are not enough.
template <class Number, int count>
__device__ __forceinline__ Pack<Number, count> fetch(const Pack<Number, count>& held) {
  static_assert(sizeof(held) == access_bytes);
  Pack<Number, count> pack;
  std::uint32_t* words = words_of(pack);
  asm volatile("ld.volatile.shared.v4.b32 {%0, %1, %2, %3}, [%4];"
               : "=r"(words[0]), "=r"(words[1]), "=r"(words[2]), "=r"(words[3])
               : "r"(static_cast<std::uint32_t>(__cvta_generic_to_shared(&held)))
               : "memory");
  return pack;
}

// Sets packs that no copy will write to 0, so that no other code has to check where rows end.
template <int held, int count, class Number>
__device__ __forceinline__ void clear_rest(const NormGradientCall<Number>& call,
                                           const RowGroup& own,
                                           HeldRows<held, count, Number>& slot) {
  constexpr Pack<std::uint32_t, 4> zeros{};
  const auto clear = [&](void* pack) { *static_cast<Pack<std::uint32_t, 4>*>(pack) = zeros; };
#pragma unroll
  for (int i = 0; i < held; ++i) {
    const bool copied = own.column<count>(i) < call.columns;
    if (!copied) clear(&slot.d_y[i][threadIdx.x]);
    if (!copied) clear(&slot.x[i][threadIdx.x]);
    if (!copied || !call.accumulate) clear(&slot.d_x[i][threadIdx.x]);
  }
}

// Fills shared memory: clears unused packs, starts the copies of the group's first rows, and loads
// the weight.
template <int held, int count, class Number>
__device__ __forceinline__ void prepare(const NormGradientCall<Number>& call, const RowGroup& own,
                                        std::int64_t row, std::int64_t step,
                                        Held<held, count, Number>& block) {
#pragma unroll
  for (int slot = 0; slot < row_slots; ++slot) {
    clear_rest(call, own, block.rows[slot]);
    send_for(call, own, row + slot * step, block.rows[slot]);
  }
#pragma unroll
  for (int i = 0; i < held; ++i) {
    const int column = own.column<count>(i);
    auto& weights = block.weight[i][threadIdx.x];
    weights = column < call.columns ? load<count>(call.weight, column) : Pack<Number, count>{};
  }
}

template <int count>
struct Numbers {
  float values[count];
};

// The sums over rows of a thread's columns.
template <int held, int count>
struct ColumnSums {
  float d_weight[held][count], d_bias[held][count];
  float d_x[held][count];
};

// Adds the column sums of all groups of a block, in the order of the groups, and writes them to the
// partials. `of_groups` has room for one number of each column of each group.
template <int held, int count>
__device__ __forceinline__ void write_partials(float* partials, const float (&sums)[held][count],
                                               float* of_groups, const RowGroup& own,
                                               std::int64_t columns) {
  const int span = own.threads * held * count;
  __syncthreads();
#pragma unroll
  for (int i = 0; i < held; ++i) {
#pragma unroll
    for (int j = 0; j < count; ++j) {
      of_groups[own.group * span + (own.thread + i * own.threads) * count + j] = sums[i][j];
    }
  }
  __syncthreads();
  for (int c = threadIdx.x; c < columns; c += gradient_threads) {
    float sum = 0.0f;
    for (int group = 0; group < own.groups; ++group) sum += of_groups[group * span + c];
    partials[c] = sum;
  }
}

// First pass over a row: returns the sums over the row, and adds its terms to the sums over rows.
template <int held, int count, class Number>
__device__ __forceinline__ RowSums look_at(const Held<held, count, Number>& block, int turn,
                                           RowStatistics row, ColumnSums<held, count>& columns) {
  const auto& slot = block.rows[turn];
  RowSums sums{0.0f, 0.0f};
#pragma unroll
  for (int i = 0; i < held; ++i) {
    const auto d_ys = fetch(slot.d_y[i][threadIdx.x]);
    const auto xs = fetch(slot.x[i][threadIdx.x]);
    const auto weights = fetch(block.weight[i][threadIdx.x]);
#pragma unroll
    for (int j = 0; j < count; ++j) {
      const float d_y = number_of(d_ys, j);
      const float normalised = (number_of(xs, j) - row.mean) * row.scale;
      const float g = weighed(d_y, number_of(weights, j));
      sums.sum += g;
      sums.projection = fmaf(g, normalised, sums.projection);
      columns.d_weight[i][j] = fmaf(d_y, normalised, columns.d_weight[i][j]);
      columns.d_bias[i][j] += d_y;
    }
  }
  return sums;
}

// Second pass over a row: returns d_x of pack i. `means` has the means over the row of g and of g
// times the normalised x.
template <int held, int count, class Number>
__device__ __forceinline__ Numbers<count> gradient_of(const Held<held, count, Number>& block,
                                                      int turn, int i, RowStatistics row,
                                                      RowSums means) {
  const auto& slot = block.rows[turn];
  const auto d_ys = fetch(slot.d_y[i][threadIdx.x]);
  const auto xs = fetch(slot.x[i][threadIdx.x]);
  const auto old = fetch(slot.d_x[i][threadIdx.x]);
  const auto weights = fetch(block.weight[i][threadIdx.x]);
  Numbers<count> d_x;
#pragma unroll
  for (int j = 0; j < count; ++j) {
    const float normalised = (number_of(xs, j) - row.mean) * row.scale;
    const float g = weighed(number_of(d_ys, j), number_of(weights, j));
    const float inner = (g - means.sum) - normalised * means.projection;
    d_x.values[j] = fmaf(row.scale, inner, number_of(old, j));
  }
  return d_x;
}

// A block processes the rows of a part; each group of whole warps processes one row at a time.
template <NormKind kind, SumsOfGradient sums, int held, int count, class Number>
__global__ void __launch_bounds__(gradient_threads, gradient_blocks)
    norm_gradient_rows(const NormGradientCall<Number> call, int group_threads) {
  __shared__ RowSums of_warps[row_slots][gradient_warps];
  extern __shared__ __align__(access_bytes) unsigned char memory[];
  auto& block = *reinterpret_cast<Held<held, count, Number>*>(memory);
  const RowGroup own(group_threads);
  const int warps = group_threads / 32, first_warp = own.group * warps;
  const int step = own.groups * static_cast<int>(call.parts);
  const int rows = static_cast<int>(call.rows);  // 32 bits spare registers
  int row = blockIdx.x + own.group * static_cast<int>(call.parts);
  prepare(call, own, row, step, block);
  ColumnSums<held, count> columns{};
  RowStatistics next{};
  if (row < rows) next = statistics_at<kind>(call.statistics, row);

  for (int turn = 0; row < rows; row += step, turn ^= 1) {
    const RowStatistics statistics = next;
    if (row + step < rows) next = statistics_at<kind>(call.statistics, row + step);
    __pipeline_wait_prior(row_slots - 1);
    RowSums means = over_group(look_at(block, turn, statistics, columns),
                               of_warps[turn] + first_warp, own.thread / 32, warps, 1 + own.group);
    means.sum *= kind == NormKind::layer ? call.per_column : 0.0f;
    means.projection *= call.per_column;
#pragma unroll
    for (int i = 0; i < held; ++i) {
      const auto d_x = gradient_of(block, turn, i, statistics, means);
      if constexpr (sums == SumsOfGradient::kept) {
#pragma unroll
        for (int j = 0; j < count; ++j) columns.d_x[i][j] += d_x.values[j];
      }
      const int column = own.column<count>(i);
      if (column >= call.columns) continue;
      const std::int64_t index = static_cast<std::int64_t>(row) * call.columns + column;
      store<count>(call.d_x, index, packed<Number>(d_x.values));
    }
    send_for(call, own, row + row_slots * step, block.rows[turn]);
  }
  // A group that has one row less still passes as many barriers. compute-sanitizer's racecheck
  // counts the barriers of a warp regardless of their number, and would report false races where
  // counts differ.
  const bool has_row_less = row - own.group * static_cast<int>(call.parts) < rows;
  if (warps > 1 && has_row_less) meet(1 + own.group, group_threads);

  __pipeline_wait_prior(0);
  auto* of_groups = reinterpret_cast<float*>(memory);  // the rows are no longer needed
  float* partials = call.partials + blockIdx.x * parameters_of(kind) * call.columns;
  write_partials(partials, columns.d_weight, of_groups, own, call.columns);
  if constexpr (kind == NormKind::layer) {
    write_partials(partials + call.columns, columns.d_bias, of_groups, own, call.columns);
  }
  if constexpr (sums == SumsOfGradient::kept) {
    write_partials(call.sums_d_x + blockIdx.x * call.columns, columns.d_x, of_groups, own,
                   call.columns);
  }
}

// The division of a row: each of `threads` threads holds `held` packs. If the row is too long,
// `held` exceeds what a thread can hold.
struct RowDivision {
  int threads, held;
};

constexpr RowDivision divide_row(std::int64_t packs, int most) {
  int threads = 32;
  while (threads * most < packs && threads < gradient_threads) threads *= 2;
  const auto held = static_cast<int>(ceiling_quotient(packs, threads));
  return {threads, held < 2 ? 2 : held};
}

template <class Number>
struct RowsKernel {
  // Null where rows are too long, or where a block cannot have the shared memory that they need.
  void (*kernel)(NormGradientCall<Number>, int) = nullptr;
  std::size_t shared_bytes = 0;
  int group_threads = 0;

  void operator()(const NormGradientCall<Number>& call, cudaStream_t stream) const {
    kernel<<<static_cast<unsigned>(call.parts), gradient_threads, shared_bytes, stream>>>(
        call, group_threads);
  }
};

// Returns the kernel for rows of this many packs and raises its limit of dynamic shared memory. It
// needs up to 112 KiB, more than a block can have on many devices of compute capability 8.6, 8.9
// and 12.0.
template <NormKind kind, SumsOfGradient sums, int count, class Number, int held = 2>
RowsKernel<Number> rows_kernel(std::int64_t packs, const LaunchContext& context) {
  const RowDivision row = divide_row(packs, most_held(sums));
  if (row.held > held) {
    if constexpr (held < most_held(sums)) {
      return rows_kernel<kind, sums, count, Number, held + 1>(packs, context);
    }
    return {};
  }
  const RowsKernel<Number> rows{norm_gradient_rows<kind, sums, held, count, Number>,
                                sizeof(Held<held, count, Number>), row.threads};
  const bool fits = take_shared_memory("a norm's gradient", rows.kernel, rows.shared_bytes,
                                       Carveout::most_shared, context);
  return fits ? rows : RowsKernel<Number>{};
}

}  // namespace stepgate
