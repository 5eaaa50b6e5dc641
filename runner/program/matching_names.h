// SPDX-License-Identifier: MIT
// Finds names of kernels by a regular expression. Names come from the user's program: a symbol of
// a hundred letters can demangle to more text than any memory has, and the matcher can take for
// ever. So both run in a child process, whose memory and time are bounded.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

namespace stepgate {

// For every symbol whether the expression is found in its readable form (kernel_name.h), cut to
// longest_name_bytes; a symbol that has none is looked at as it is. nullopt: there was no time,
// also for one of them (5 s), or no memory. Throws std::system_error when the system has no process
// or pipe left, and std::regex_error for what is no expression.
std::optional<std::vector<bool>> matching_names(const std::vector<std::string>& symbols,
                                                const std::string& expression,
                                                std::chrono::steady_clock::time_point deadline);

}  // namespace stepgate
