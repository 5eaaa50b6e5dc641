// SPDX-License-Identifier: MIT
#include "plan/compose/build_parts.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <utility>

#include "base/require.h"
#include "plan/allocate/pack_arena.h"
#include "plan/analyse/access.h"
#include "plan/analyse/lifetimes.h"
#include "plan/analyse/stream_handoff.h"
#include "plan/compose/build_input.h"
#include "plan/compose/own_gradients.h"
#include "plan/count/step_memory.h"

namespace stepgate {
namespace {

struct Stay {
  std::size_t first;  // operations, inclusive
  std::size_t last;
  int stream = compute_stream;       // that allocates and releases
  std::set<int> other_streams = {};  // for which it has to wait before the release
};

// The first and last operation of each activation and of each of these gradients.
std::map<int, Stay> lifetimes_of_temporaries(const StepPlan& plan, const std::set<int>& gradients,
                                             AllocStream allocating) {
  std::map<int, Stay> lifetimes;
  for (std::size_t index = 0; index < plan.operations.size(); ++index) {
    for (const BufferAccess& access : accesses_of(plan, plan.operations[index])) {
      const int buffer = access.use.buffer;
      if (!is_temporary(buffer_at(plan, buffer)) && !gradients.contains(buffer)) continue;
      const int stream = plan.operations[index].stream;
      const bool by_writer =
          allocating == AllocStream::writer && !is_ordered_with_compute(plan, stream);
      const int first_stream = by_writer ? stream : compute_stream;
      Stay& stay = lifetimes.try_emplace(buffer, Stay{index, index, first_stream}).first->second;
      if (stay.stream == compute_stream) {
        stay.first = std::min(stay.first, last_awaited_record(plan, index));
        stay.last = std::max(stay.last, next_awaiting_wait(plan, index));
      } else {
        stay.last = index;
        if (stream != stay.stream) stay.other_streams.insert(stream);
      }
    }
  }
  return lifetimes;
}

// Extends each lifetime to that of all temporaries of its turn together. The evaluation counts as a
// turn of its own.
void stretch_to_the_longest(const StepPlan& plan, std::map<int, Stay>& lifetimes) {
  std::map<std::pair<bool, std::int64_t>, Stay> by_turn;
  const auto turn_of = [&](const Stay& stay) {
    const Operation& first = plan.operations[stay.first];
    return std::pair(first.phase == Phase::evaluation, first.turn);
  };
  for (const auto& [buffer, lifetime] : lifetimes) {
    Stay& all = by_turn.try_emplace(turn_of(lifetime), lifetime).first->second;
    all.first = std::min(all.first, lifetime.first);
    all.last = std::max(all.last, lifetime.last);
  }
  for (auto& [buffer, lifetime] : lifetimes) {
    const Stay& all = by_turn.at(turn_of(lifetime));
    lifetime.first = all.first;
    lifetime.last = all.last;
  }
}

// Releases all gradients of a turn together, since zero_grad() follows the update of all
// parameters.
void release_together(const StepPlan& plan, const std::set<int>& gradients,
                      std::map<int, Stay>& lifetimes) {
  std::map<std::int64_t, std::size_t> last_of_turn;
  const auto last_with = [&](const Stay& stay) -> std::size_t& {
    return last_of_turn[plan.operations[stay.last].turn];
  };
  for (const int gradient : gradients) {
    const Stay& stay = lifetimes.at(gradient);
    last_with(stay) = std::max(last_with(stay), stay.last);
  }
  for (const int gradient : gradients) {
    Stay& stay = lifetimes.at(gradient);
    stay.last = last_with(stay);
  }
}

// The size of the largest activation that a forward, backward or evaluation kernel touches; 0 for
// other operations.
std::int64_t bytes_of_a_temporary(const StepPlan& plan, const Operation& operation) {
  const bool computes = operation.phase == Phase::forward || operation.phase == Phase::backward ||
                        operation.phase == Phase::evaluation;
  if (!computes || !std::holds_alternative<LaunchKernel>(operation.action)) return 0;
  std::int64_t most = 0;
  for (const BufferAccess& access : accesses_of(plan, operation)) {
    const Buffer& buffer = plan.buffers[static_cast<std::size_t>(access.use.buffer)];
    if (buffer.purpose == Purpose::activations) most = std::max(most, access.use.bytes);
  }
  return most;
}

// Returns an operation to insert next to `neighbour`: in the same phase, and in the graph if
// `neighbour` is captured.
Operation beside(const Operation& neighbour, std::string name, Action action,
                 int stream = compute_stream) {
  Operation operation;
  operation.name = std::move(name);
  operation.phase = neighbour.phase;
  operation.stream = stream;
  operation.action = std::move(action);
  operation.captured = neighbour.captured;
  operation.every = neighbour.every;
  operation.turn = neighbour.turn;
  return operation;
}

// Inserts temporary buffers for each operation, which are allocated before it and released after
// it.
void add_temporaries(StepPlan& plan, const AllocKnobs& alloc) {
  std::map<std::pair<std::int64_t, std::int64_t>, int> temporaries;  // by number and bytes
  const auto temporary = [&](std::int64_t number, std::int64_t bytes) {
    const auto [place, is_new] = temporaries.try_emplace({number, bytes}, 0);
    if (is_new) {
      place->second = static_cast<int>(plan.buffers.size());
      plan.buffers.push_back({.name = "temporary " + std::to_string(number),
                              .purpose = Purpose::activations,
                              .bytes = bytes,
                              .allocated_by = allocated_by(alloc.with)});
    }
    return place->second;
  };
  const std::vector<Operation> before = std::exchange(plan.operations, {});
  for (const Operation& operation : before) {
    const std::int64_t bytes = bytes_of_a_temporary(plan, operation);
    const std::int64_t count = bytes > 0 ? alloc.temps : 0;
    for (std::int64_t number = 0; number < count; ++number) {
      plan.operations.push_back(
          beside(operation, "allocate a temporary", Allocate{temporary(number, bytes)}));
    }
    plan.operations.push_back(operation);
    for (std::int64_t number = 0; number < count; ++number) {
      plan.operations.push_back(
          beside(operation, "release a temporary", Release{temporary(number, bytes)}));
    }
  }
}

Operation at_the_end(Phase phase, std::string name, Action action) {
  Operation operation;
  operation.name = std::move(name);
  operation.phase = phase;
  operation.action = std::move(action);
  return operation;
}

void add_leak(StepPlan& plan, const AllocKnobs& alloc) {
  const int leak = static_cast<int>(plan.buffers.size());
  plan.buffers.push_back({.name = "leak",
                          .purpose = Purpose::activations,
                          .bytes = alloc.leak_bytes,
                          .allocated_by = allocated_by(alloc.with)});
  plan.operations.push_back(at_the_end(Phase::log, "leak memory", Allocate{leak}));
}

void add_empty_cache(StepPlan& plan, std::int64_t every) {
  Operation operation = at_the_end(Phase::log, "empty the cache", EmptyCache{});
  operation.every = every;
  plan.operations.push_back(std::move(operation));
}

CachingRules rules_of(const AllocKnobs& alloc) {
  CachingRules rules;
  rules.segments =
      alloc.with == Allocator::expandable ? SegmentKind::expandable : SegmentKind::fixed;
  rules.round_divisions = alloc.round == AllocRound::none       ? 0
                          : alloc.round == AllocRound::quarters ? 4
                                                                : 8;
  rules.split_max_bytes = alloc.split_max_bytes;
  return rules;
}

// The number of steps from the one that first uses the buffer to the one that last uses it, both
// included.
std::int64_t steps_of(const std::vector<Operation>& operations, const Stay& stay) {
  const Operation& first = operations[stay.first];
  const Operation& last = operations[stay.last];
  return (last.turn - first.turn + first.every) % first.every + 1;
}

// Lets the stream that allocated the buffer wait for the others that used it, then release it.
void add_release(StepPlan& plan, const Operation& neighbour, int buffer, const Stay& stay) {
  const std::string& name = buffer_at(plan, buffer).name;
  for (const int other : stay.other_streams) {
    const int used = static_cast<int>(plan.events.size());
    plan.events.push_back({name + " is used"});
    plan.operations.push_back(beside(neighbour, name + " is used", RecordEvent{used}, other));
    plan.operations.push_back(
        beside(neighbour, "wait until " + name + " is used", StreamWaitsEvent{used}, stay.stream));
  }
  plan.operations.push_back(beside(neighbour, "release " + name, Release{buffer}, stay.stream));
}

void add_stays(StepPlan& plan, const AllocKnobs& alloc, bool gives_gradients_back) {
  if (alloc.when == AllocWhen::never) return;
  const std::set<int> gradients =
      gives_gradients_back ? give_gradients_their_own(plan) : std::set<int>{};
  std::map<int, Stay> lifetimes = lifetimes_of_temporaries(plan, gradients, alloc.stream);
  if (lifetimes.empty()) return;
  release_together(plan, gradients, lifetimes);
  if (alloc.when != AllocWhen::op) stretch_to_the_longest(plan, lifetimes);
  const std::vector<Operation> before = std::exchange(plan.operations, {});
  std::vector<std::vector<int>> begin(before.size()), end(before.size());  // buffers, by operation
  for (const auto& [buffer, lifetime] : lifetimes) {
    begin[lifetime.first].push_back(buffer);
    if (alloc.release) end[lifetime.last].push_back(buffer);
  }
  for (std::size_t index = 0; index < before.size(); ++index) {
    for (const int buffer : begin[index]) {
      Buffer& allocated = plan.buffers[static_cast<std::size_t>(buffer)];
      allocated.allocated_by = allocated_by(alloc.with);
      plan.operations.push_back(
          beside(before[index], "allocate " + allocated.name,
                 Allocate{.buffer = buffer, .steps = steps_of(before, lifetimes.at(buffer))},
                 lifetimes.at(buffer).stream));
    }
    plan.operations.push_back(before[index]);
    for (const int buffer : end[index])
      add_release(plan, before[index], buffer, lifetimes.at(buffer));
  }
}

}  // namespace

void build_allocations(StepPlan& plan, const AllocKnobs& alloc, bool gives_gradients_back) {
  add_stays(plan, alloc, gives_gradients_back);
  if (alloc.temps > 0) add_temporaries(plan, alloc);
  if (alloc.leak_bytes > 0) add_leak(plan, alloc);
  if (alloc.empty_cache_every > 0) add_empty_cache(plan, alloc.empty_cache_every);
}

MemoryCap known_cap(const MemoryCap& cap, std::optional<std::int64_t> device_memory_bytes) {
  if (cap.of != CapOf::device) return cap;
  if (!device_memory_bytes) return {};
  // Rounds down as PyTorch does for a share of the device's memory.
  return {CapOf::bytes, std::floor(cap.amount * static_cast<double>(*device_memory_bytes))};
}

std::optional<std::int64_t> cap_bytes(const StepPlan& plan, const MemoryCap& cap) {
  switch (cap.of) {
    case CapOf::nothing:
      return std::nullopt;
    case CapOf::bytes:
      return static_cast<std::int64_t>(cap.amount);
    case CapOf::need:
      return std::llround(cap.amount * static_cast<double>(most_live_bytes(
                                           lifetimes_of(largest_turn(plan)).device)));
    case CapOf::device:
      break;
  }
  require(false, "a share of a device's memory is made bytes of first");
  return std::nullopt;
}

std::optional<AllocatorPlan> allocator_plan(const AllocKnobs& alloc,
                                            std::optional<std::int64_t> cap) {
  if (allocated_by(alloc.with) != AllocatedBy::step_allocator) return std::nullopt;
  AllocatorPlan made;
  made.kind =
      alloc.with == Allocator::first_fit ? AllocatorKind::first_fit : AllocatorKind::caching;
  made.rules = rules_of(alloc);
  made.cap_bytes = cap;
  return made;
}

std::optional<std::int64_t> pool_cap_bytes(const StepPlan& plan, const AllocKnobs& alloc,
                                           std::optional<std::int64_t> cap) {
  if (!cap || alloc.with != Allocator::cuda_async) return std::nullopt;
  return *cap - kept_bytes(plan);
}

}  // namespace stepgate
