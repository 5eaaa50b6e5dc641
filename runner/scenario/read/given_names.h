// SPDX-License-Identifier: MIT
// The names that an author of a scenario gives, and what they may be made of.
#pragma once

#include <string_view>

namespace stepgate {

// Letters, digits and _, and no digit first: assertions name variants.
bool is_variant_name(std::string_view);

// Letters, digits, _ and -.
bool is_line_name(std::string_view);

// a to z, 0 to 9, _ and -.
bool is_tag(std::string_view);

}  // namespace stepgate
