// SPDX-License-Identifier: MIT
// Checks the files that a verb will write, before it writes them.
#pragma once

#include <filesystem>
#include <functional>
#include <span>
#include <string>

#include "verbs/arguments.h"

namespace stepgate {

// Checks every output file before anything runs: it must not be an input or another output, and
// must be writable. Otherwise an output or an input would be lost. Inputs are scenarios with the
// files they extend, files in a folder of scenarios, profiles, stored runs and `more`, such as
// programs. Throws RequestError.
//
// Where an output is standard output, text for people goes to standard error from now on.
void check_outputs(const Arguments&, std::span<const std::filesystem::path> more = {});

// Carries out the writing of an output. A failure is said on standard error at once, and leads to
// an exit code at the end (status_after_outputs): the verb goes on, so that a disk that is full
// hides no outcome, and the other outputs are written.
void write_output(const std::function<void()>& write);

// The status with which the process ends: that of the verb, or the graver one of an output that
// could not be written, standard output included.
int status_after_outputs(int status);

// The stream for people's text, which determines whether colours are used.
int descriptor_of_text();

// Prints to standard error what a signal interrupted: "interrupted: 'a' is not decided; written:
// r.json, t.a.fix.json", or "; nothing was written". Returns the exit code.
int say_interrupted(const std::string& what);

}  // namespace stepgate
