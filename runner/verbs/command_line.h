// SPDX-License-Identifier: MIT
// The command line: verbs, their options, and what is wrong with what was typed.
#pragma once

#include <CLI/CLI.hpp>

#include "verbs/verbs.h"

namespace stepgate {

// Adds the verbs and their options to the parser; the chosen one is left in `chosen`.
void declare_verbs(CLI::App& app, Arguments& arguments, Verb& chosen);

}  // namespace stepgate
