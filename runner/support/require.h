// SPDX-License-Identifier: MIT
// Broken invariants of stepgate itself. Nothing that a user can write reaches these.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <source_location>
#include <string_view>

namespace stepgate {

// Aborts with the place and the invariant when it does not hold.
inline void require(bool holds, std::string_view invariant,
                    std::source_location place = std::source_location::current()) {
  if (holds) return;
  std::fprintf(stderr, "%s:%u: broken invariant: %.*s\n", place.file_name(), place.line(),
               static_cast<int>(invariant.size()), invariant.data());
  std::abort();
}

}  // namespace stepgate
