// SPDX-License-Identifier: MIT
// For fuzz targets only: reads text as a scenario, which may extend itself or a small base.
#pragma once

#include "scenario/read/read_scenario.h"
#include "tests/fuzz/fuzz_input.h"

namespace stepgate {

// Reads the text as a scenario. Throws only RequestError.
inline Scenario read_fuzzed_scenario(std::string_view text) {
  return parse_scenario(text, "fuzz.toml", [](const std::string& file) -> TextOrProblem {
    if (file == "base.toml") return "[model]\nhidden = 64\n";
    return no_base(file);
  });
}

}  // namespace stepgate
