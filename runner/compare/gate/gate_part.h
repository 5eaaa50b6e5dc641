// SPDX-License-Identifier: MIT
// The comparisons that a gate consists of.
#pragma once

#include <array>
#include <cstddef>
#include <string_view>

namespace stepgate {

enum class GatePart { counts, time, assertions };
inline constexpr std::array gate_parts{GatePart::counts, GatePart::time, GatePart::assertions};

constexpr std::string_view name_of(GatePart part) {
  constexpr std::array<std::string_view, gate_parts.size()> names{"counts", "time", "assertions"};
  return names[static_cast<std::size_t>(part)];
}

}  // namespace stepgate
