// SPDX-License-Identifier: MIT
// Cost of an allocator to the host: an allocate and free pair among so many live blocks, and
// carrying out a long recording.
#include <benchmark/benchmark.h>

#include <cmath>

#include "base/random.h"
#include "plan/allocators/caching/caching_allocator.h"
#include "plan/allocators/first_fit_allocator.h"
#include "plan/allocators/simulated_memory.h"
#include "plan/allocators/testing/replay.h"

namespace stepgate {
namespace {

constexpr std::int64_t device_bytes = std::int64_t{1} << 50;  // never exhausted
constexpr std::size_t prepared_requests = 1 << 16;

struct Prepared {
  std::uint64_t which;
  std::int64_t bytes;
};

// Random sizes from 512 bytes to 32 MiB, uniform in the exponent, and the index of the live block
// to free first.
std::vector<Prepared> prepare() {
  Random random(1);
  std::vector<Prepared> requests(prepared_requests);
  for (Prepared& request : requests) {
    request = {random.bits(), static_cast<std::int64_t>(std::exp2(9 + random.uniform() * 16))};
  }
  return requests;
}

template <class Allocator>
void run_pairs(benchmark::State& state, Allocator& allocator) {
  const std::vector<Prepared> requests = prepare();
  std::vector<BlockId> live(static_cast<std::size_t>(state.range(0)));
  std::size_t next = 0;
  const auto take = [&](const Prepared& request) {
    return std::get<HeldBlock>(allocator.allocate(request.bytes, 0)).id;
  };
  for (BlockId& id : live) id = take(requests[next++ % prepared_requests]);
  for (std::size_t step = 0; step < 20 * live.size(); ++step) {  // fills the cache
    const Prepared& request = requests[next++ % prepared_requests];
    BlockId& id = live[request.which % live.size()];
    allocator.free(id);
    id = take(request);
  }
  for ([[maybe_unused]] auto once : state) {
    const Prepared& request = requests[next++ % prepared_requests];
    BlockId& id = live[request.which % live.size()];
    allocator.free(id);
    id = take(request);
  }
  state.counters["segments"] = static_cast<double>(allocator.statistics().segment.all.current);
}

void caching_pair(benchmark::State& state) {
  SimulatedMemory memory(device_bytes);
  CachingAllocator allocator(memory, CachingRules());
  run_pairs(state, allocator);
}
BENCHMARK(caching_pair)->Arg(10)->Arg(100)->Arg(1000)->Arg(10000)->Arg(100000);

void expandable_pair(benchmark::State& state) {
  SimulatedMemory memory(device_bytes);
  CachingAllocator allocator(memory, {.segments = SegmentKind::expandable});
  run_pairs(state, allocator);
}
BENCHMARK(expandable_pair)->Arg(10)->Arg(1000)->Arg(10000);

void first_fit_pair(benchmark::State& state) {
  SimulatedMemory memory(device_bytes);
  FirstFitAllocator allocator(memory);
  run_pairs(state, allocator);
}
BENCHMARK(first_fit_pair)->Arg(10)->Arg(1000);

// A million requests, frees and occasional uses on another stream, with up to a thousand live
// blocks.
AllocationRecording long_recording() {
  constexpr std::size_t events = 1'000'000;
  Random random(2);
  AllocationRecording recording;
  recording.device_bytes = device_bytes;
  std::vector<std::size_t> live;
  while (recording.events.size() < events) {
    RecordedEvent event;
    const double draw = random.uniform();
    if (live.size() < 1000 && (live.empty() || draw < 0.52)) {
      event.bytes = static_cast<std::int64_t>(std::exp2(9 + random.uniform() * 16));
      event.block = recording.blocks++;
      event.stream = static_cast<StreamId>(random.below(2));
      live.push_back(event.block);
    } else if (draw < 0.98) {
      std::swap(live[random.below(live.size())], live.back());
      event.action = RecordedAction::free;
      event.block = live.back();
      live.pop_back();
    } else if (draw < 0.99) {
      event.action = RecordedAction::record_stream;
      event.block = live[random.below(live.size())];
      event.stream = 2;
    } else {
      event.action = RecordedAction::finish;
      event.stream = 2;
    }
    recording.events.push_back(event);
  }
  return recording;
}

void replay_a_million_events(benchmark::State& state) {
  const AllocationRecording recording = long_recording();
  for ([[maybe_unused]] auto once : state) {
    RecordedMemory memory(recording);
    CachingAllocator allocator(memory, recording.rules);
    const ReplayResult result = replay(recording, memory, allocator);
    if (result.difference || result.events != recording.events.size())
      state.SkipWithError("the replay ended early");
  }
}
BENCHMARK(replay_a_million_events)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace stepgate

BENCHMARK_MAIN();
