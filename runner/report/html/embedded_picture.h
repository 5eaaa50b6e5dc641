// SPDX-License-Identifier: MIT
// A picture that has a file of its own, within a page that has many.
#pragma once

#include <string>
#include <string_view>

namespace stepgate {

// The SVG of draw_timeline or draw_memory without what would reach beyond it in a page: its style,
// its namespace, and names of patterns, which get the number of the picture. `words` say what it
// shows.
std::string embedded_picture(std::string_view svg, std::string_view words, int number);

}  // namespace stepgate
