// SPDX-License-Identifier: MIT
// libFuzzer: reads text as what a team has accepted, for a gate and for attached programs. It is
// refused. Else every number is finite, an entry of a gate has an end, and accepted counts that are
// written again read the same.
#include <cmath>

#include "compare/gate/accepted.h"
#include "program/accepted_counts.h"
#include "tests/fuzz/fuzz_input.h"

namespace {

using namespace stepgate;

void check(const Accepted& entry) {
  require(std::isfinite(entry.limit), "a limit is a number");
  require(!entry.who.empty() && !entry.why.empty(), "somebody accepts it for a reason");
  require(!counts_on(entry, "9999-12-31"), "nothing is accepted for ever");
  (void)speaks_of(entry, "scenario/variant", "time");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static FuzzedFile file;
  const std::string_view text = fuzzed_text(data, size);
  (void)unless_refused([&] {
    for (const Accepted& entry : read_accepted(file.with(text), "2026-11-27")) check(entry);
    return std::string();
  });
  check_reads_back(text, [&](std::string_view one) {
    return unless_refused([&] {
      const AcceptedCounts accepted = read_accepted_counts(file.with(one));
      for (const ComparedCount& count : compare_counts(accepted, CountedProcess{}))
        require(std::isfinite(count.accepted), "an accepted count is a number");
      return to_text(accepted);
    });
  });
  return 0;
}
