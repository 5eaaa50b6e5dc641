// SPDX-License-Identifier: MIT
// Runs a program's scenarios with `<program> run` as a child, and reads the assertions of the JSON
// that it wrote.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "compare/gate/gate_stages.h"
#include "verbs/arguments.h"

namespace stepgate {

// `files` instead of those of the arguments; `bases` are folders, each with a ':' behind it, that
// they may extend from besides. Throws std::system_error when there is no process.
RunOfProgram run_program_on(const Arguments&, ComparisonSide, const std::string& program,
                            const std::vector<std::filesystem::path>& files, std::uint64_t seed,
                            const std::string& bases = {});

}  // namespace stepgate
