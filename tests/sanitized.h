// SPDX-License-Identifier: MIT
// For tests only. Under a sanitizer everything takes about ten times as long, and tests do less.
#pragma once

namespace stepgate {

#if defined(STEPGATE_SANITIZED)
inline constexpr bool sanitized = true;
#else
inline constexpr bool sanitized = false;
#endif

}  // namespace stepgate
