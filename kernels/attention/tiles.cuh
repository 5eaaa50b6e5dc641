// SPDX-License-Identifier: MIT
// Tiles of a head's rows in shared memory, and products of tiles by tensor cores. A warp owns 16
// rows of every product. The kernels decide which tiles are multiplied.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cstdint>
#include <type_traits>

namespace stepgate {

// The instructions of attention's tensor-core kernels that C++ cannot express: asynchronous copies
// to shared memory, loads of 8x8 blocks and their products (PTX ISA: cp.async, ldmatrix,
// mma.m16n8k16).

// An address in the block's shared memory, as PTX instructions take it.
using SharedAddress = std::uint32_t;

// Returns the start of the block's dynamic shared memory.
__device__ __forceinline__ SharedAddress shared_memory() {
  extern __shared__ uint4 block_memory[];
  return static_cast<SharedAddress>(__cvta_generic_to_shared(block_memory));
}

// Copies 16 bytes asynchronously. Writes zeros if they do not exist, and then does not read `from`.
__device__ __forceinline__ void copy_16_async(SharedAddress to, const void* from, bool exist) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;\n" ::"r"(to), "l"(from),
               "r"(exist ? 16 : 0)
               : "memory");
}

__device__ __forceinline__ void copy_float_async(SharedAddress to, const float* from) {
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4;\n" ::"r"(to), "l"(from) : "memory");
}

// Waits for all copies of this thread; copies of other threads need a barrier afterwards.
__device__ __forceinline__ void wait_for_copies() {
  asm volatile("cp.async.wait_all;\n" ::: "memory");
}

__device__ __forceinline__ void store_shared(SharedAddress to, std::uint32_t value) {
  asm volatile("st.shared.b32 [%0], %1;\n" ::"r"(to), "r"(value) : "memory");
}

__device__ __forceinline__ void store_shared(SharedAddress to, float value) {
  store_shared(to, __float_as_uint(value));
}

__device__ __forceinline__ float2 load_shared_pair(SharedAddress from) {
  float2 pair;
  asm volatile("ld.shared.v2.f32 {%0, %1}, [%2];\n" : "=f"(pair.x), "=f"(pair.y) : "r"(from));
  return pair;
}

__device__ __forceinline__ uint4 load_shared_16(SharedAddress from) {
  uint4 chunk;
  asm volatile("ld.shared.v4.b32 {%0, %1, %2, %3}, [%4];\n"
               : "=r"(chunk.x), "=r"(chunk.y), "=r"(chunk.z), "=r"(chunk.w)
               : "r"(from));
  return chunk;
}

// A warp's fragment of four 8x8 blocks: lane l holds numbers 2 * (l % 4) and the next one of row l
// / 4 of each block.
struct Blocks {
  std::uint32_t pairs[4];
};

// Loads the blocks; lane l gives the address of row l % 8 of block l / 8.
__device__ __forceinline__ Blocks load_blocks(SharedAddress row) {
  Blocks b;
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];\n"
               : "=r"(b.pairs[0]), "=r"(b.pairs[1]), "=r"(b.pairs[2]), "=r"(b.pairs[3])
               : "r"(row));
  return b;
}

// Like load_blocks, with each block transposed.
__device__ __forceinline__ Blocks load_blocks_turned(SharedAddress row) {
  Blocks b;
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];\n"
               : "=r"(b.pairs[0]), "=r"(b.pairs[1]), "=r"(b.pairs[2]), "=r"(b.pairs[3])
               : "r"(row));
  return b;
}

// Computes sums (16x8) += a (16x16) b (16x8). Blocks of a are rows 0-7 and 8-15 of columns 0-7,
// then of columns 8-15. b is transposed: low and high are its rows 0-7 and 8-15. Lane l has columns
// 2 * (l % 4) and the next of the sums, in row l / 4, then in row l / 4 + 8.
template <class Number>
__device__ __forceinline__ void multiply_blocks(float (&sums)[4], const Blocks& a,
                                                std::uint32_t low, std::uint32_t high) {
  const auto& p = a.pairs;
  if constexpr (std::is_same_v<Number, __half>) {
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
        "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};\n"
        : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
        : "r"(p[0]), "r"(p[1]), "r"(p[2]), "r"(p[3]), "r"(low), "r"(high));
  } else {
    static_assert(std::is_same_v<Number, __nv_bfloat16>);
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
        "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};\n"
        : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
        : "r"(p[0]), "r"(p[1]), "r"(p[2]), "r"(p[3]), "r"(low), "r"(high));
  }
}

// Computes 2^value in one instruction, with an error of at most 2 ulp; 0 for minus infinity.
__device__ __forceinline__ float power_of_two(float value) {
  float power;
  asm("ex2.approx.ftz.f32 %0, %1;\n" : "=f"(power) : "f"(value));
  return power;
}

// Rounds two numbers to storage; the first is in the low half.
template <class Number>
__device__ __forceinline__ std::uint32_t rounded_pair(float first, float second) {
  std::uint32_t pair;
  if constexpr (std::is_same_v<Number, __half>) {
    asm("cvt.rn.f16x2.f32 %0, %1, %2;\n" : "=r"(pair) : "f"(second), "f"(first));
  } else {
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;\n" : "=r"(pair) : "f"(second), "f"(first));
  }
  return pair;
}

constexpr int rows_of_warp = 16;
constexpr float log2_of_e = 1.44269504f;

// A tile of rows of `width` 2-byte numbers. The 16-byte chunks of a row are permuted by the row's
// number, so that a column of chunks over 8 rows lies in different banks.
template <int width>
struct Tile {
  static constexpr int chunks = width / 8;  // of a row

  static constexpr int bytes(int rows) { return rows * width * 2; }

  SharedAddress start;

  __device__ SharedAddress at(int row, int chunk) const {
    return start + row * (width * 2) + ((chunk ^ (row % 8)) * 16);
  }
};

// Starts to copy `rows` rows from row `first` on; rows from `end` on become zeros. All `threads`
// threads take part. Each copies one column of chunks, in rows whose permutation is the same.
template <int rows, int threads, int width, class Number>
__device__ __forceinline__ void copy_tile(Tile<width> to, const Number* from, std::int64_t stride,
                                          int first, int end) {
  constexpr int chunks = Tile<width>::chunks;
  constexpr int step = threads / chunks;
  static_assert(step % 8 == 0 && rows % step == 0);
  const int row = static_cast<int>(threadIdx.x) / chunks;
  const int chunk = static_cast<int>(threadIdx.x) % chunks;
  const SharedAddress target = to.at(row, chunk);
  const Number* source = from + (first + row) * stride + chunk * 8;
#pragma unroll
  for (int i = 0; i < rows / step; ++i) {
    copy_16_async(target + i * Tile<width>::bytes(step), source, first + row + i * step < end);
    source += step * stride;
  }
}

// The warp's 16 rows of a tile as left factors: columns 16 * step and the next 15.
template <int width>
__device__ __forceinline__ Blocks left_factors(Tile<width> tile, int first_row, int step) {
  const int lane = threadIdx.x % 32;
  return load_blocks(tile.at(first_row + lane % 16, (2 * step) ^ (lane / 16)));
}

// Computes sums[16 x 8 columns] += left[16 x width] * rows^T. left(step) returns the left factors
// of columns 16 * step and the next 15.
template <class Number, int width, int columns, class Left>
__device__ __forceinline__ void multiply_by_rows(float (&sums)[columns][4], Left left,
                                                 Tile<width> rows) {
  const int lane = threadIdx.x % 32;
#pragma unroll
  for (int step = 0; step < width / 16; ++step) {
    const Blocks a = left(step);
#pragma unroll
    for (int pair = 0; pair < columns / 2; ++pair) {
      const int row = 16 * pair + lane / 16 * 8 + lane % 8;
      const Blocks b = load_blocks(rows.at(row, (2 * step) ^ (lane / 8 % 2)));
      multiply_blocks<Number>(sums[2 * pair], a, b.pairs[0], b.pairs[1]);
      multiply_blocks<Number>(sums[2 * pair + 1], a, b.pairs[2], b.pairs[3]);
    }
  }
}

// Computes sums[16 x width] += left[16 x 8 columns] * rows, with the left factors rounded to
// storage.
template <class Number, int width, int columns>
__device__ __forceinline__ void multiply_by_columns(float (&sums)[width / 8][4],
                                                    const float (&left)[columns][4],
                                                    Tile<width> rows) {
  const int lane = threadIdx.x % 32;
#pragma unroll
  for (int step = 0; step < columns / 2; ++step) {
    const auto& low = left[2 * step];
    const auto& high = left[2 * step + 1];
    const Blocks a = {rounded_pair<Number>(low[0], low[1]), rounded_pair<Number>(low[2], low[3]),
                      rounded_pair<Number>(high[0], high[1]),
                      rounded_pair<Number>(high[2], high[3])};
#pragma unroll
    for (int pair = 0; pair < width / 16; ++pair) {
      const Blocks b = load_blocks_turned(rows.at(16 * step + lane % 16, (2 * pair) ^ (lane / 16)));
      multiply_blocks<Number>(sums[2 * pair], a, b.pairs[0], b.pairs[1]);
      multiply_blocks<Number>(sums[2 * pair + 1], a, b.pairs[2], b.pairs[3]);
    }
  }
}

// The functions below return the row of sums[n][i] among the 16, and its column among the 8
// `columns`.
__device__ __forceinline__ int sum_row(int i) {
  return static_cast<int>(threadIdx.x % 32) / 4 + i / 2 * 8;
}
__device__ __forceinline__ int sum_column(int n, int i) {
  return 8 * n + static_cast<int>(threadIdx.x % 4) * 2 + i % 2;
}

// Writes the first `count` of the warp's 16 rows, scaled by one factor for the upper and one for
// the lower 8. They pass through rows of a tile that no other warp uses any more, so that each
// access moves 16 bytes.
template <class Number, int width>
__device__ __forceinline__ void store_rows(const float (&sums)[width / 8][4],
                                           const float (&factors)[2], Tile<width> stage,
                                           int first_row, Number* to, std::int64_t stride,
                                           int count) {
  const int lane = threadIdx.x % 32;
  __syncwarp();
#pragma unroll
  for (int n = 0; n < width / 8; ++n) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      store_shared(stage.at(first_row + sum_row(2 * half), n) + lane % 4 * 4,
                   rounded_pair<Number>(sums[n][2 * half] * factors[half],
                                        sums[n][2 * half + 1] * factors[half]));
    }
  }
  __syncwarp();
  constexpr int chunks = Tile<width>::chunks;
#pragma unroll
  for (int i = 0; i < rows_of_warp * chunks / 32; ++i) {
    const int row = (i * 32 + lane) / chunks, chunk = (i * 32 + lane) % chunks;
    if (row >= count) continue;
    *reinterpret_cast<uint4*>(to + row * stride + chunk * 8) =
        load_shared_16(stage.at(first_row + row, chunk));
  }
}

}  // namespace stepgate
