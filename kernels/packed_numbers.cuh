// SPDX-License-Identifier: MIT
// Packs of 16-bit numbers in registers. They are read as words, so that two numbers stay in one
// register until they are needed. By default the compiler spreads the bf16 numbers of a pack over
// one register each, which costs a kernel that holds many packs half of its warps.
#pragma once

#include "kernels/launch.cuh"

namespace stepgate {

template <class Number, int count>
__device__ __forceinline__ std::uint32_t* words_of(Pack<Number, count>& pack) {
  return reinterpret_cast<std::uint32_t*>(&pack);
}

template <class Number, int count>
__device__ __forceinline__ const std::uint32_t* words_of(const Pack<Number, count>& pack) {
  return reinterpret_cast<const std::uint32_t*>(&pack);
}

// Returns number i of the pack.
template <class Number, int count>
__device__ __forceinline__ float number_of(const Pack<Number, count>& pack, int i) {
  if constexpr (std::is_same_v<Number, __nv_bfloat16> && count % 2 == 0) {
    const std::uint32_t word = words_of(pack)[i / 2];
    return __uint_as_float(i % 2 == 0 ? word << 16 : word & 0xffff0000u);
  } else if constexpr (std::is_same_v<Number, __half> && count % 2 == 0) {
    const auto pair = *reinterpret_cast<const __half2*>(words_of(pack) + i / 2);
    return i % 2 == 0 ? __low2float(pair) : __high2float(pair);
  } else {
    return to_float(pack.values[i]);
  }
}

// Rounds the numbers to the pack's type.
template <class Number, int count>
__device__ __forceinline__ Pack<Number, count> packed(const float (&numbers)[count]) {
  Pack<Number, count> pack;
  if constexpr (std::is_same_v<Number, __nv_bfloat16> && count % 2 == 0) {
#pragma unroll
    for (int i = 0; i < count; i += 2) {
      const __nv_bfloat162 pair = __floats2bfloat162_rn(numbers[i], numbers[i + 1]);
      words_of(pack)[i / 2] = *reinterpret_cast<const std::uint32_t*>(&pair);
    }
  } else if constexpr (std::is_same_v<Number, __half> && count % 2 == 0) {
#pragma unroll
    for (int i = 0; i < count; i += 2) {
      const __half2 pair = __floats2half2_rn(numbers[i], numbers[i + 1]);
      words_of(pack)[i / 2] = *reinterpret_cast<const std::uint32_t*>(&pair);
    }
  } else {
#pragma unroll
    for (int i = 0; i < count; ++i) pack.values[i] = from_float<Number>(numbers[i]);
  }
  return pack;
}

// Makes the compiler forget values that it derived from the pack. Otherwise it would keep floats in
// twice as many registers across a barrier.
template <class Number, int count>
__device__ __forceinline__ void derive_again(Pack<Number, count>& pack) {
  static_assert(sizeof(pack) % 4 == 0);
#pragma unroll
  for (std::size_t i = 0; i < sizeof(pack) / 4; ++i) asm volatile("" : "+r"(words_of(pack)[i]));
}

}  // namespace stepgate
