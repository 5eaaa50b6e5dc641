// SPDX-License-Identifier: MIT
// The instructions of tensor-core kernels that C++ cannot express: asynchronous copies to shared
// memory, loads of 8x8 blocks and their products (PTX ISA: cp.async, ldmatrix, mma.m16n8k16), and
// tiles in shared memory that these load without bank conflicts.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cstdint>
#include <type_traits>

namespace stepgate {

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

}  // namespace stepgate
