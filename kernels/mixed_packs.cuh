// SPDX-License-Identifier: MIT
// Element-wise kernels whose operands differ in width: the numbers that a thread moves, and whether
// the operands' alignment allows packs. launch.cuh launches them.
#pragma once

#include "kernels/launch.cuh"

namespace stepgate {

// Where most bytes are fp32, a thread takes 4 numbers of every operand: each access of a warp then
// covers whole sectors of the fp32 operands, which packs of 8 (two accesses 32 bytes apart) do not.
constexpr int mixed_count = 4;

template <int count, class Number>
bool aligned_to_packs(const Number* pointer) {
  return reinterpret_cast<std::uintptr_t>(pointer) % alignof(Pack<Number, count>) == 0;
}

template <int count, class... Pointer>
bool all_aligned_to_packs(const Pointer*... pointers) {
  return (aligned_to_packs<count>(pointers) && ...);
}

}  // namespace stepgate
