// SPDX-License-Identifier: MIT
// The command line: verbs, their options, and errors in the arguments.
#pragma once

#include <CLI/CLI.hpp>
#include <span>
#include <string>
#include <string_view>

#include "verbs/settings.h"
#include "verbs/verbs.h"

namespace stepgate {

// Suggests the verb or option that a nonexistent one was probably meant to be: "did you mean
// '--budget'?". Empty where no name is similar, or where the error is another one.
std::string suggestion_for(const CLI::App& app, std::span<const std::string_view> typed);

// Adds the verbs and their options to the parser, which stores the chosen verb in `chosen`. Help
// shows the settings as defaults, with their places.
void declare_verbs(CLI::App& app, Arguments& arguments, Verb& chosen,
                   const RepositorySettings& settings = {});

// The command of the verb that was parsed.
CommandOfRun command_of(const CLI::App&, const Arguments&);

}  // namespace stepgate
