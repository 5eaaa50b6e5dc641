// SPDX-License-Identifier: MIT
// Whether an untrusted JSON text is safe to read. Deep nesting parses, but copying, comparing or
// printing the value then recurses once per level.
#pragma once

#include <string_view>

namespace stepgate {

inline constexpr int deepest_json = 32;

// Whether brackets outside strings nest deeper than deepest_json.
bool nests_too_deep(std::string_view json);

}  // namespace stepgate
