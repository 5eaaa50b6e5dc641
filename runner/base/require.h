// SPDX-License-Identifier: MIT
// Broken invariants of stepgate itself. Nothing that a user can write reaches these.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <string_view>

namespace stepgate {

// Aborts with the source location and the invariant if it does not hold. Uses the compiler's
// builtins, since clang 14, which builds the fuzz targets, has no std::source_location.
inline void require(bool holds, std::string_view invariant, const char* file = __builtin_FILE(),
                    int line = __builtin_LINE()) {
  if (holds) return;
  std::fprintf(stderr, "%s:%d: broken invariant: %.*s\n", file, line,
               static_cast<int>(invariant.size()), invariant.data());
  std::abort();
}

}  // namespace stepgate
