// SPDX-License-Identifier: MIT
// Reads what `<program> run --json` writes, which may be a stranger's program: no line is believed
// to be what it should be.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "compare/gate/gate_stages.h"

namespace stepgate {

// Longest text of a reason. Reasons about stored runs have three intervals and advice.
inline constexpr std::size_t longest_text_of_run = 2000;

class RunReader {
 public:
  // Takes the next line, which is one JSON object. Returns why no more lines should be read, in
  // words, if so.
  std::optional<std::string> take(std::string_view line);
  // Returns what the lines said. Its `failure` says that one of them is no JSON.
  const RunOfProgram& run() const { return run_; }

 private:
  RunOfProgram run_;
  std::int64_t bytes_ = 0;
};

}  // namespace stepgate
