// SPDX-License-Identifier: MIT
// Other processes, one at a time and waited for.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace stepgate {

// Runs this program once more with these arguments, on the same streams, and returns its exit code:
// 128 + n when signal n ended it. The child is asked to end when this process does. Throws
// std::system_error when it cannot be started.
int run_this_program(const std::vector<std::string>& arguments);

// A number for the executable that is running: another build of the program is another number.
// Throws std::system_error when it cannot be read.
std::uint64_t digest_of_this_program();

// The first line that a command prints; nothing when it cannot be started, fails or prints nothing.
// What it says on its error stream is dropped.
std::optional<std::string> first_line_of(const std::vector<std::string>& command);

}  // namespace stepgate
