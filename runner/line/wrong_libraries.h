// SPDX-License-Identifier: MIT
// Facts of the libraries of kernels that a scenario names, read from their files. Nothing of a
// library runs.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "base/text/diagnostic.h"
#include "line/planned.h"
#include "scenario/scenario.h"

namespace stepgate {

struct WrongLibrary {
  Diagnostic fault;        // at the key of the variant, or in the table
  bool is_absent = false;  // there is no such file, which may only not be built yet
};

// Each library that is absent, is no library of this build's interface, or exports no function of
// that name, and each table whose sizes are none for a launch of the variant's plan: the first such
// launch.
std::vector<WrongLibrary> wrong_libraries(const Planned&);

// Throws RequestError with all of them.
void refuse_wrong_libraries(std::span<const Planned>);

// Returns what `stepgate kernel check` has said of the bytes of each kernel, or that nobody has
// asked it.
std::vector<std::string> notes_of_checks(const Scenario&);

}  // namespace stepgate
