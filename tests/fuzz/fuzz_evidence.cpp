// SPDX-License-Identifier: MIT
// libFuzzer: any text as evidence of earlier runs. It is refused, or reads back as it is written,
// and no byte of that can be changed unnoticed.
#include "history/evidence/evidence_file.h"
#include "tests/fuzz/fuzz_input.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace stepgate;
  static FuzzedFile file;
  check_digested(fuzzed_text(data, size), [&](std::string_view one) {
    return unless_refused([&] { return evidence_text(read_evidence(file.with(one))); });
  });
  return 0;
}
