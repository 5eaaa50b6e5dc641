// SPDX-License-Identifier: MIT
// libFuzzer: any text as a scenario, read and no more: many times as often as fuzz_scenario, and
// built in a third of its time.
#include "tests/fuzz/fuzzed_scenario.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    stepgate::read_fuzzed_scenario(stepgate::fuzzed_text(data, size));
  } catch (const stepgate::RequestError&) {
  }
  return 0;
}
