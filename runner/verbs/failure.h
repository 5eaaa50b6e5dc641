// SPDX-License-Identifier: MIT
// The words and the exit code of what a verb throws.
#pragma once

#include "report/exit_code.h"

namespace stepgate {

// Called while an exception other than Interrupted is handled: prints it to standard error, and
// returns the exit code that it leads to where nothing graver was found.
ExitCode say_failure();

}  // namespace stepgate
