// SPDX-License-Identifier: MIT
// How many elements the operands of kernels have, where several kernels agree. What a kernel alone
// knows is in its folder.
#pragma once

#include "kernels/kernel.h"
#include "kernels/update_control.h"

namespace stepgate::extent {

using Shape = CheckedShape;
using Attributes = KernelAttributes;

inline constexpr auto one = [](const Shape&, DType, const Attributes&) -> CheckedSize { return 1; };
inline constexpr auto rows = [](const Shape& s, DType, const Attributes&) { return s.rows; };
inline constexpr auto columns = [](const Shape& s, DType, const Attributes&) { return s.columns; };
inline constexpr auto depth = [](const Shape& s, DType, const Attributes&) { return s.depth; };
inline constexpr auto elements = [](const Shape& s, DType, const Attributes&) {
  return s.rows * s.columns;
};
inline constexpr auto two_a_row = [](const Shape& s, DType, const Attributes&) {
  return 2 * s.rows;
};
inline constexpr auto rows_by_depth = [](const Shape& s, DType, const Attributes&) {
  return s.rows * s.depth;
};
inline constexpr auto rows_by_groups = [](const Shape& s, DType, const Attributes&) {
  return s.rows * s.groups;
};
inline constexpr auto depth_by_columns = [](const Shape& s, DType, const Attributes&) {
  return s.depth * s.columns;
};
// Queries, keys and values of each row.
inline constexpr auto packed_qkv = [](const Shape& s, DType, const Attributes&) {
  return 3 * s.rows * s.columns;
};

// Elements of the factors and the result of `groups` GEMMs.
inline constexpr auto left_factors = [](const Shape& s, DType, const Attributes&) {
  return s.groups * s.rows * s.depth;
};
inline constexpr auto right_factors = [](const Shape& s, DType, const Attributes&) {
  return s.groups * s.depth * s.columns;
};
inline constexpr auto gemm_results = [](const Shape& s, DType, const Attributes&) {
  return s.groups * s.rows * s.columns;
};

inline constexpr auto control = [](const Shape&, DType, const Attributes&) -> CheckedSize {
  return update_control::size;
};

}  // namespace stepgate::extent
