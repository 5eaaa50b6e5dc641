// SPDX-License-Identifier: MIT
// Scenarios for programs, which `list --json` writes.
#pragma once

#include <iosfwd>
#include <string>

#include "base/text/diagnostic.h"
#include "scenario/scenario.h"

namespace stepgate {

// One JSON object a line: name, file, tags, the steps in words, and of every assertion its name,
// line and text. Of a file with faults the name and what is wrong with it: whoever makes tests of
// scenarios must not lose one.
void write_listed(std::ostream&, const Scenario&);
void write_unlisted(std::ostream&, const std::string& file, const RequestError&);

}  // namespace stepgate
