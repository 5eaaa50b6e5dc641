// SPDX-License-Identifier: MIT
// libFuzzer: reads any line as a job for another process. It is refused, or is the job that it says
// in full: written again, it reads the same.
#include "line/job.h"
#include "tests/fuzz/fuzz_input.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace stepgate;
  check_reads_back(fuzzed_text(data, size), [](std::string_view line) {
    return unless_refused([&] { return to_line(read_job(line)); });
  });
  return 0;
}
