// SPDX-License-Identifier: MIT
// libFuzzer: reads any text as a scenario, without planning it. This runs many times as often as
// fuzz_scenario, and builds in a third of its time.
#include "tests/fuzz/fuzzed_scenario.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    stepgate::read_fuzzed_scenario(stepgate::fuzzed_text(data, size));
  } catch (const stepgate::RequestError&) {
  }
  return 0;
}
