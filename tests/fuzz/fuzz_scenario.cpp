// SPDX-License-Identifier: MIT
// libFuzzer: any text as a scenario, which may extend itself or a small base. It is read or
// refused; anything else is a fault.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "scenario/read/read_scenario.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const stepgate::BaseReader base = [&](const std::string& file) -> stepgate::TextOrProblem {
    if (file == "base.toml") return "[model]\nhidden = 64\n";
    return stepgate::no_base(file);
  };
  try {
    stepgate::parse_scenario(text, "fuzz.toml", base);
  } catch (const stepgate::RequestError&) {
  }
  return 0;
}
