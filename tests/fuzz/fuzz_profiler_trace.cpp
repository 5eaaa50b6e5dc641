// SPDX-License-Identifier: MIT
// libFuzzer: reads bytes as a trace of torch.profiler, or as a snapshot of PyTorch's allocator.
// They are refused, or counted: each count is a number of things a step, and the parts of the time
// add up to the step.
#include <cmath>

#include "program/read/memory_snapshot.h"
#include "program/read/split_trace.h"
#include "program/read/synthetic_scenario.h"
#include "tests/fuzz/fuzz_input.h"

namespace {

using namespace stepgate;

void check(const CountedTrace& counted, const TracedStep& split) {
  for (const double count : counted.counted.mean)
    require(std::isfinite(count) && count >= 0, "a count is no less than nothing");
  const TimeBreakdown& time = split.time;
  const double parts = time.math + time.memory + time.latency + time.copies + time.communication +
                       time.idle_after_wait + time.idle_for_data + time.idle_for_host +
                       time.idle_in_queue;
  require(std::abs(parts - time.step) <= 1e-6 * time.step + 1e-9, "all time of a step is split");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static FuzzedFile file;
  const std::filesystem::path& path = file.with(fuzzed_text(data, size));
  (void)unless_refused([&] {
    if (is_memory_snapshot(path)) {
      (void)needs_of(read_memory_snapshot(path), std::int64_t{1} << 30);
      return std::string();
    }
    StepChoice choice;
    choice.skip = 0;
    const ProfilerTrace trace = read_profiler_trace(path);
    const CountedTrace counted = count_trace(trace, choice);
    const TracedStep split = split_trace(trace, counted);
    check(counted, split);
    return synthetic_scenario(counted.counted, split);
  });
  return 0;
}
