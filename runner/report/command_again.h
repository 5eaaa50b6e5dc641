// SPDX-License-Identifier: MIT
// The command that shows again what a report says.
#pragma once

#include <cstdint>
#include <string>

#include "report/run_info.h"

namespace stepgate {

struct Report;
struct ReportedScenario;

// Quoted for a shell, with the seed of the run and without the files that it wrote; empty where the
// command of the run is not known. The scenarios are those of the run, or of this file alone.
std::string command_again(const RunInfo&, const std::string& scenario_file = "");

// The command for the only scenario of a report that did not pass, or for all of them; empty where
// everything passed.
std::string command_again(const Report&);

// "again: stepgate run a.toml --seed 7", as text says it; empty for an empty command.
std::string again_in_words(const std::string& command);

}  // namespace stepgate
