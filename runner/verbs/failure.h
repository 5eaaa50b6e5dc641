// SPDX-License-Identifier: MIT
// The words and the exit code of what a verb throws.
#pragma once

#include <string_view>

#include "report/exit_code.h"

namespace stepgate {

// Called while an exception other than Interrupted is handled: prints it to standard error, and
// returns the exit code that it leads to where nothing graver was found.
ExitCode say_failure();

// Prints "the device failed: ..." and takes no memory for it.
void write_failure(std::string_view fact);
// The same of a lack of host memory.
ExitCode say_out_of_memory();

}  // namespace stepgate
