// SPDX-License-Identifier: MIT
// For tests only. Under a sanitizer everything takes about ten times as long, and tests do less.
#pragma once

namespace stepgate {

#if defined(STEPGATE_SANITIZED)
inline constexpr bool sanitized = true;
#else
inline constexpr bool sanitized = false;
#endif

// First in a test that simulates rates and nothing else: what it runs others run too, and its rates
// are those of the same program as released.
#define STEPGATE_RATES_AS_RELEASED() \
  if (sanitized) GTEST_SKIP() << "rates are simulated as released"

}  // namespace stepgate
