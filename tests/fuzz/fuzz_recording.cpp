// SPDX-License-Identifier: MIT
// libFuzzer: reads text as a recording of an allocator. It is refused, or can be replayed, and
// always differs from the allocator at the same place.
#include <sstream>

#include "plan/allocators/caching/caching_allocator.h"
#include "plan/allocators/testing/replay.h"
#include "tests/fuzz/fuzz_input.h"

namespace {

using namespace stepgate;

std::string carried_out(const AllocationRecording& recording) {
  RecordedMemory memory(recording);
  CachingAllocator allocator(memory, recording.rules);
  const ReplayResult result = replay(recording, memory, allocator);
  require(result.difference || result.events == recording.events.size(),
          "a replay ends where it differs, or at the end");
  return result.difference ? to_string(*result.difference, recording) : "";
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::istringstream text{std::string(fuzzed_text(data, size))};
  try {
    const AllocationRecording recording = read_recording(text, "fuzzed.jsonl");
    require(carried_out(recording) == carried_out(recording), "a replay is the same twice");
  } catch (const RequestError&) {
  }
  return 0;
}
