// SPDX-License-Identifier: MIT
// The instructions of attention's tensor-core kernels that C++ has no words for: asynchronous
// copies to shared memory, loads of 8x8 blocks, products of them (PTX ISA: cp.async, ldmatrix,
// mma.m16n8k16). tiles.cuh says which numbers go where.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>
#include <type_traits>

namespace stepgate {

// An address in the block's shared memory.
using SharedAddress = std::uint32_t;

// Where the block's dynamic shared memory starts.
__device__ __forceinline__ SharedAddress shared_memory() {
  extern __shared__ uint4 block_memory[];
  return static_cast<SharedAddress>(__cvta_generic_to_shared(block_memory));
}

// 16 bytes; zeros when they do not exist, whose address is not read then.
__device__ __forceinline__ void copy_16_async(SharedAddress to, const void* from, bool exist) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;\n" ::"r"(to), "l"(from),
               "r"(exist ? 16 : 0)
               : "memory");
}

__device__ __forceinline__ void copy_float_async(SharedAddress to, const float* from) {
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4;\n" ::"r"(to), "l"(from) : "memory");
}

// Waits for all copies of this thread; others need a barrier behind it.
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

// A warp's part of four 8x8 blocks: lane l has numbers 2 * (l % 4) and the next of row l / 4 of
// each.
struct Blocks {
  std::uint32_t pairs[4];
};

// Lane l gives the address of row l % 8 of block l / 8.
__device__ __forceinline__ Blocks load_blocks(SharedAddress row) {
  Blocks b;
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];\n"
               : "=r"(b.pairs[0]), "=r"(b.pairs[1]), "=r"(b.pairs[2]), "=r"(b.pairs[3])
               : "r"(row));
  return b;
}

// The same, each block transposed.
__device__ __forceinline__ Blocks load_blocks_turned(SharedAddress row) {
  Blocks b;
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];\n"
               : "=r"(b.pairs[0]), "=r"(b.pairs[1]), "=r"(b.pairs[2]), "=r"(b.pairs[3])
               : "r"(row));
  return b;
}

// sums (16x8) += a (16x16) b (16x8). Blocks of a: rows 0-7 and 8-15 of columns 0-7, then of columns
// 8-15. b by columns: low and high are its rows 0-7 and 8-15, transposed. Of the sums, lane l has
// columns 2 * (l % 4) and the next of row l / 4, then of row l / 4 + 8.
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

// 2^value in one instruction, off by 2 ulp; 0 for minus infinity.
__device__ __forceinline__ float power_of_two(float value) {
  float power;
  asm("ex2.approx.ftz.f32 %0, %1;\n" : "=f"(power) : "f"(value));
  return power;
}

// Two numbers rounded to storage; the first in the low half.
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

}  // namespace stepgate
