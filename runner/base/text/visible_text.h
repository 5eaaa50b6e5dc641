// SPDX-License-Identifier: MIT
// Text that files and libraries wrote, such as keys, claims and reasons, where it could pass for
// something else: a line of a log, a command to a terminal or to a CI system.
#pragma once

#include <string>
#include <string_view>

namespace stepgate {

// On one line and visible: line ends, other control characters, what turns the direction of text
// round and what is not UTF-8 are written as escapes (\n, \x1b, \u202e). So is the first character
// of what CI systems take for a command to them: GitHub's "::" at the beginning of a line, behind
// spaces too, and "##[", "##vso[" and "##teamcity[" wherever they stand.
std::string one_line(std::string_view);
// The same, but line ends stay.
std::string visible_lines(std::string_view);

// Whole characters of a text, and an ellipsis where it has more bytes.
std::string beginning_of(const std::string& text, std::size_t most_bytes);

}  // namespace stepgate
