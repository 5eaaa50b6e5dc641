// SPDX-License-Identifier: MIT
// libFuzzer: reads text as an assertion. It parses, or there is exactly one error.
#include <array>

#include "scenario/assertions/parse_expectation.h"
#include "tests/fuzz/fuzz_input.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text = stepgate::fuzzed_text(data, size);
  constexpr std::array<std::string_view, 2> variants{"baseline", "fix"};
  std::vector<stepgate::Diagnostic> diagnostics;
  const auto assertion =
      stepgate::parse_expectation("line", text, {"fuzz.toml", 1, 1}, variants, diagnostics);
  stepgate::require(diagnostics.size() == (assertion ? 0U : 1U),
                    "an assertion is read or refused once");
  return 0;
}
