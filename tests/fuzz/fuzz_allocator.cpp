// SPDX-License-Identifier: MIT
// libFuzzer: interprets bytes as rules and requests. The allocator keeps its promises for every
// request, and ends empty.
#include <cstddef>
#include <cstdint>

#include "base/require.h"
#include "plan/allocators/first_fit_allocator.h"
#include "plan/allocators/testing/random_requests.h"

namespace {

using namespace stepgate;

constexpr std::int64_t device_bytes = std::int64_t{1} << 30;

CachingRules rules_from(std::uint8_t bits) {
  CachingRules rules;
  if (bits & 1) rules.segments = SegmentKind::expandable;
  if (bits & 2) rules.round_divisions = 8;
  if (bits & 4) rules.split_max_bytes = std::int64_t{32} << 20;
  if (bits & 8) rules.garbage_collection_threshold = 0.5;
  return rules;
}

// Checking every block after every request takes quadratic time, so in a long sequence only every
// eighth request is checked. Damage usually persists until then.
constexpr int looked_at_one_by_one = 48;
constexpr int looked_at_every = 8;

void check(RequestBytes bytes, SimulatedMemory& memory, MemoryAllocator& allocator,
           CachingAllocator* captures) {
  RandomRequests requests(memory, allocator);
  for (int made = 0; !bytes.empty(); ++made) {
    requests.step(bytes, captures);
    if (made >= looked_at_one_by_one && made % looked_at_every != 0 && !bytes.empty()) continue;
    const auto broken = requests.broken();
    require(!broken, broken.value_or(""));
  }
  requests.let_everything_go(captures);
  require(memory.free_bytes() == device_bytes, "everything that was taken is given back");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  RequestBytes bytes({data, size});
  const std::uint8_t kind = bytes.next();
  SimulatedMemory memory(device_bytes);
  if (kind & 16) {
    FirstFitAllocator allocator(memory);
    check(bytes, memory, allocator, nullptr);
  } else {
    CachingAllocator allocator(memory, rules_from(kind));
    check(bytes, memory, allocator, &allocator);
  }
  return 0;
}
