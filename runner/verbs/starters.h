// SPDX-License-Identifier: MIT
// The scenarios that `stepgate new` begins a file with: those of scenarios/start, word for word.
// They are part of the program, which may be installed without them.
#pragma once

#include <span>
#include <string_view>

namespace stepgate {

struct Starter {
  std::string_view word;  // the thing of a step that it is about
  std::string_view text;
};

// In the order of a step.
std::span<const Starter> starters();

}  // namespace stepgate
