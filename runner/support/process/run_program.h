// SPDX-License-Identifier: MIT
// Other processes, one at a time and waited for.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace stepgate {

// Runs this program once more with these arguments, on the same streams, and returns its exit code:
// 128 + n when signal n ended it. The child is asked to end when this process does. Throws
// std::system_error when it cannot be started.
int run_this_program(const std::vector<std::string>& arguments);

// Runs a command with nothing on its input, its output dropped and its errors in a file, until it
// ends, is stopped, or has taken so long; then it is asked to end and, a second later, killed with
// all that it started; so is what it leaves in its group when it ends by itself. Its exit code, 128
// + n when signal n ended it, 127 when it does not start; nothing when it was stopped or took too
// long. It does not see the named variables of the environment.
std::optional<int> run_quietly(const std::vector<std::string>& command,
                               const std::vector<std::string>& hidden_variables,
                               const std::filesystem::path& errors,
                               std::chrono::nanoseconds at_most,
                               const std::function<bool()>& stopped);

// A number for the executable that is running: another build of the program is another number.
// Throws std::system_error when it cannot be read.
std::uint64_t digest_of_this_program();

// The first line that a command prints; nothing when it cannot be started, fails or prints nothing.
// What it says on its error stream is dropped.
std::optional<std::string> first_line_of(const std::vector<std::string>& command);

}  // namespace stepgate
