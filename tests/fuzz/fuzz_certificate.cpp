// SPDX-License-Identifier: MIT
// libFuzzer: any text as a certificate. It is refused, or reads back as it is written, and no byte
// of that can be changed unnoticed.
#include "history/certificate/certificate_file.h"
#include "tests/fuzz/fuzz_input.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace stepgate;
  static FuzzedFile file;
  const std::string_view text = fuzzed_text(data, size);
  const std::string scenario = fuzzed_name(text, "scenario");
  const std::string variant = fuzzed_name(text, "variant");
  check_digested(text, [&](std::string_view one) {
    return unless_refused([&]() -> std::optional<std::string> {
      const Certificate certificate = read_certificate(file.with(one), scenario, variant);
      // A certificate of an earlier format is read for its subject alone, so there is nothing to
      // write.
      if (certificate.outdated) return std::nullopt;
      return certificate_text(certificate);
    });
  });
  return 0;
}
