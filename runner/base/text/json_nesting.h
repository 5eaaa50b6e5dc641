// SPDX-License-Identifier: MIT
// Whether a JSON text that somebody else wrote may be read: what is nested tens of thousands deep
// is parsed, and copying, comparing or printing it is one call a level.
#pragma once

#include <string_view>

namespace stepgate {

inline constexpr int deepest_json = 32;

// Its brackets, outside strings, nest deeper than that.
bool nests_too_deep(std::string_view json);

}  // namespace stepgate
