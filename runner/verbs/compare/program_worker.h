// SPDX-License-Identifier: MIT
// A scenario of a user's program as one side of a gate.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "scenario/scenario.h"
#include "verbs/arguments.h"

namespace stepgate {

// Reads the scenario of --program. Throws RequestError where it names no program.
Scenario program_scenario(const std::filesystem::path& file,
                          const std::vector<std::string>& overrides);

// `stepgate worker --program FILE --cwd DIR`.
int work_of_program(const Arguments&);

}  // namespace stepgate
