// SPDX-License-Identifier: MIT
// Runs a program's scenarios with `<program> run` as a child process, and reads the assertions in
// its JSON output.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "compare/gate/gate_stages.h"
#include "verbs/arguments.h"

namespace stepgate {

// Runs `files` instead of those in the arguments. `bases` lists folders, each followed by ':',
// whose files they may extend too. `options` are further ones of `run`. Throws std::system_error
// when no process can be started.
RunOfProgram run_program_on(const Arguments&, ComparisonSide, const std::string& program,
                            const std::vector<std::filesystem::path>& files, std::uint64_t seed,
                            const std::string& bases = {}, const Command& options = {});

// The last line of what a program wrote to its standard error, as text; empty where there is none.
std::string last_line_of(std::string_view errors);

}  // namespace stepgate
