// SPDX-License-Identifier: MIT
// Numbers of elements of operands that several kernels share, as functions of any shape with these
// sizes. Extents of a single kernel are in its folder.
#pragma once

#include "kernels/declare.h"
#include "kernels/update_control.h"

namespace stepgate::extent {

inline constexpr auto one = [](const auto&) -> CheckedSize { return 1; };
inline constexpr auto rows = [](const auto& s) { return s.rows; };
inline constexpr auto columns = [](const auto& s) { return s.columns; };
inline constexpr auto elements = [](const auto& s) { return elements_of(s); };
inline constexpr auto two_a_row = [](const auto& s) { return 2 * s.rows; };
inline constexpr auto control = [](const auto&) -> CheckedSize { return update_control::size; };

}  // namespace stepgate::extent

namespace stepgate {

// Flops of a kernel that computes nothing, or a constant number for each element.
inline constexpr auto no_flops = [](const auto&) -> CheckedSize { return 0; };
template <std::int64_t flops>
inline constexpr auto flops_an_element = [](const auto& s) { return flops * elements_of(s); };

// Whether a kernel adds to its result, for kernels with such an attribute.
inline constexpr auto accumulates = [](const auto& attributes) { return attributes.accumulate; };

}  // namespace stepgate
