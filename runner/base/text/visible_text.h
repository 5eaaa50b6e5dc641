// SPDX-License-Identifier: MIT
// Text that files and libraries wrote, such as keys, claims and reasons, where it could pass for
// something else: a line of a log, a command to a terminal or to a CI system.
#pragma once

#include <string>
#include <string_view>

namespace stepgate {

// Makes the text visible on one line. Line ends, other control characters, overrides of text
// direction and bytes that are not UTF-8 become escapes (\n, \x1b, \u202e). So does the first
// character of text that CI systems take for a command. These are GitHub's "::" at the beginning of
// a line, also behind spaces, and "##[", "##vso[" and "##teamcity[" anywhere.
std::string one_line(std::string_view);
// Like one_line, but keeps line ends.
std::string visible_lines(std::string_view);

// Cuts the text after whole characters to at most `most_bytes`, and adds an ellipsis if it was
// longer.
std::string beginning_of(const std::string& text, std::size_t most_bytes);

}  // namespace stepgate
