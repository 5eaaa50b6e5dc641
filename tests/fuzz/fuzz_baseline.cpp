// SPDX-License-Identifier: MIT
// libFuzzer: reads text as stored runs. It is refused, or is read and written unchanged, and no
// byte of that can be changed unnoticed.
#include "ledger/baseline/baseline_record.h"
#include "tests/fuzz/fuzz_input.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace stepgate;
  static FuzzedFile file;
  const std::string_view text = fuzzed_text(data, size);
  const std::string scenario = fuzzed_name(text, "scenario");
  check_digested(text, [&](std::string_view one) {
    return unless_refused([&] { return baseline_text(read_baseline(file.with(one), scenario)); });
  });
  return 0;
}
