// SPDX-License-Identifier: MIT
// For tests only. Under a sanitizer everything takes about ten times as long, so tests do less.
#pragma once

namespace stepgate {

#if defined(STEPGATE_SANITIZED)
inline constexpr bool sanitized = true;
#else
inline constexpr bool sanitized = false;
#endif

// Skips a test under sanitizers that only simulates rates: other tests cover its code, and its
// rates equal those of the released program.
#define STEPGATE_RATES_AS_RELEASED() \
  if (sanitized) GTEST_SKIP() << "rates are simulated as released"

}  // namespace stepgate
