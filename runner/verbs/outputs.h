// SPDX-License-Identifier: MIT
// Files that a verb is to write, before it writes them.
#pragma once

#include <filesystem>
#include <span>
#include <string>

#include "verbs/arguments.h"

namespace stepgate {

// Asks of every output that was named, before anything runs: that it is none of the inputs, no
// other output and can be written. What is written would be gone, or the input would. Inputs are
// the scenarios with what they extend, the files in a folder of scenarios, profiles, stored runs
// and `more`: programs, say. Throws RequestError.
//
// Where one of them is standard output, what is for people goes to standard error from now on.
void check_outputs(const Arguments&, std::span<const std::filesystem::path> more = {});

// Where what is for people goes: a colour is for the terminal behind it.
int descriptor_of_text();

// Says on standard error what a signal leaves in the middle: "interrupted: 'a' is not decided;
// written: r.json, t.a.fix.json", or "; nothing was written". Returns the exit code.
int say_interrupted(const std::string& what);

}  // namespace stepgate
