// SPDX-License-Identifier: MIT
// Files that a verb is to write, before it writes them.
#pragma once

#include <filesystem>
#include <span>

#include "verbs/arguments.h"

namespace stepgate {

// Throws RequestError where two outputs are one file, or an output is one of the inputs: a program,
// a scenario, a file in a folder of scenarios. What is written would be gone, or the input would.
void refuse_outputs_over(std::span<const std::filesystem::path> inputs, const Arguments&);

}  // namespace stepgate
