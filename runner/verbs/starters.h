// SPDX-License-Identifier: MIT
// The scenarios that `stepgate new` can start a file from: exact copies of scenarios/start. They
// are compiled into the program, since an installation may lack the files.
#pragma once

#include <span>
#include <string_view>

namespace stepgate {

struct Starter {
  std::string_view word;  // the part of a step that it shows
  std::string_view text;
};

// Starters in the order of the parts of a step.
std::span<const Starter> starters();

}  // namespace stepgate
