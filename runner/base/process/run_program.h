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

// Thrown when this process cannot start another one or cannot find its own program.
class ProcessError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// The link by which Linux names the running executable.
inline const std::filesystem::path own_program_link = "/proc/self/exe";

// The path of the running executable. Throws ProcessError where there is none.
std::filesystem::path path_of_this_program(const std::filesystem::path& link = own_program_link);

// Runs this program again with these arguments and the same streams, except for an input that is
// given. Returns its exit code: 128 + n when signal n ended it. The child is asked to end when this
// process ends. It has its own process group. The signal that interrupts this process
// (base/interruption.h) is forwarded once; a child that does not end soon is killed. Ctrl-Z stops
// both. Throws ProcessError when the program cannot be started.
int run_this_program(const std::vector<std::string>& arguments,
                     const std::filesystem::path& program = own_program_link,
                     const std::optional<std::string>& input = {});

// A digest of the running executable; other builds have other digests. Throws ProcessError when the
// file cannot be read.
std::uint64_t digest_of_this_program(const std::filesystem::path& program = own_program_link);

// The first line that a command prints, of a program that own_tool finds or that has a path.
// nullopt when it cannot be started, fails, prints nothing or too long a line for Child, or takes
// longer than allowed. Its standard error is dropped. No process that it started is left. It sees
// `variables`, "NAME=value" each, and those of this process that have other names.
std::optional<std::string> first_line_of(std::vector<std::string> command,
                                         std::chrono::nanoseconds at_most,
                                         std::vector<std::string> variables = {});

}  // namespace stepgate
