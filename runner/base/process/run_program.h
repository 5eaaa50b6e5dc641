// SPDX-License-Identifier: MIT
// Other processes, one at a time and waited for.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

namespace stepgate {

// This process cannot start another one, or not find its own program.
class ProcessError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// The link by which Linux names the executable that is running.
inline const std::filesystem::path own_program_link = "/proc/self/exe";

// Its path. Throws ProcessError where there is none.
std::filesystem::path path_of_this_program(const std::filesystem::path& link = own_program_link);

// Runs this program once more with these arguments, on the same streams but for an input that is
// given, and returns its exit code: 128 + n when signal n ended it. The child is asked to end when
// this process does. It has a process group of its own: the signal that interrupts this process
// (base/interruption.h) is sent on to it, once, and what has not ended by that soon is killed.
// Ctrl-Z stops both. Throws ProcessError when it cannot be started.
int run_this_program(const std::vector<std::string>& arguments,
                     const std::filesystem::path& program = own_program_link,
                     const std::optional<std::string>& input = {});

// A number for the executable that is running: another build of the program is another number.
// Throws ProcessError when it cannot be read.
std::uint64_t digest_of_this_program(const std::filesystem::path& program = own_program_link);

// The first line that a command prints; nothing when it cannot be started, fails, prints nothing or
// a line that is too long for Child, or takes longer. What it says on its error stream is dropped.
// Nothing that it started is left.
std::optional<std::string> first_line_of(
    const std::vector<std::string>& command,
    std::chrono::nanoseconds at_most = std::chrono::minutes(10));

}  // namespace stepgate
