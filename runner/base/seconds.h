// SPDX-License-Identifier: MIT
// Durations as numbers of seconds.
#pragma once

#include <chrono>

namespace stepgate {

inline constexpr double nanoseconds_per_second = 1e9;

constexpr double seconds(std::chrono::nanoseconds duration) {
  return std::chrono::duration<double>(duration).count();
}

}  // namespace stepgate
