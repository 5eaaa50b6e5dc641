// SPDX-License-Identifier: MIT
#include "plan/count/step_memory.h"

#include <algorithm>
#include <utility>

#include "plan/allocate/pack_arena.h"
#include "plan/analyse/access.h"
#include "plan/analyse/lifetimes.h"

namespace stepgate {
namespace {

std::size_t moments_of(const StepPlan& plan) {
  return std::max<std::size_t>(plan.operations.size(), 1);
}

std::size_t purpose_of(const StepPlan& plan, int buffer) {
  return static_cast<std::size_t>(plan.buffers[static_cast<std::size_t>(buffer)].purpose);
}

// Live bytes at every operation, from ranges of live buffers: collects changes and sums them at the
// end, since many ranges may span many operations.
class LiveBytes {
 public:
  explicit LiveBytes(const StepPlan& plan) : changes_(moments_of(plan) + 1) {}

  void add(const Lifetime& lifetime, std::size_t purpose, std::int64_t bytes) {
    changes_[static_cast<std::size_t>(lifetime.first)][purpose] += bytes;
    changes_[static_cast<std::size_t>(lifetime.last) + 1][purpose] -= bytes;
  }

  // Live bytes by operation, on top of `always`, which is live all the time.
  std::vector<BytesByPurpose> sums(BytesByPurpose always = {}) && {
    changes_.pop_back();
    for (BytesByPurpose& moment : changes_) {
      for (std::size_t purpose = 0; purpose < moment.size(); ++purpose)
        moment[purpose] = always[purpose] += moment[purpose];
    }
    return std::move(changes_);
  }

 private:
  std::vector<BytesByPurpose> changes_;
};

// Whether an allocation lasts over several steps, so that operations of other steps happen during
// its lifetime.
bool lasts_over_steps(const StepPlan& plan) {
  return std::any_of(plan.operations.begin(), plan.operations.end(),
                     [](const Operation& operation) {
                       const auto* allocate = std::get_if<Allocate>(&operation.action);
                       return allocate && allocate->steps > 1;
                     });
}

BytesByPurpose kept_by_purpose(const StepPlan& plan) {
  BytesByPurpose kept{};
  for (const Buffer& buffer : plan.buffers) {
    const bool stays = buffer.allocated_by == AllocatedBy::the_plan;
    if (takes_device_memory(buffer.memory) && stays)
      kept[static_cast<std::size_t>(buffer.purpose)] += buffer.bytes * buffer.slots;
  }
  return kept;
}

HeldMemory held_by_operations(const StepPlan& plan) {
  LiveBytes allocated(plan);
  for (const Lifetime& lifetime : allocated_lifetimes_of(plan)) {
    const Buffer& buffer = plan.buffers[static_cast<std::size_t>(lifetime.buffer)];
    allocated.add(lifetime, purpose_of(plan, lifetime.buffer), buffer.bytes * lifetime.slots);
  }
  HeldMemory most;
  for (const BytesByPurpose& moment : std::move(allocated).sums(kept_by_purpose(plan))) {
    most.most_bytes = std::max(most.most_bytes, sum_of(moment));
    for (std::size_t purpose = 0; purpose < moment.size(); ++purpose)
      most.most[purpose] = std::max(most.most[purpose], moment[purpose]);
  }
  return most;
}

HeldMemory held_on_device(const StepPlan& plan) {
  if (!lasts_over_steps(plan)) return held_by_operations(plan);
  HeldMemory most;
  for (std::int64_t turn = 0; turn < std::ssize(plan.batch_sizes); ++turn) {
    const HeldMemory held = held_by_operations(turn_alone(plan, turn));
    most.most_bytes = std::max(most.most_bytes, held.most_bytes);
    for (std::size_t purpose = 0; purpose < held.most.size(); ++purpose)
      most.most[purpose] = std::max(most.most[purpose], held.most[purpose]);
  }
  return most;
}

}  // namespace

std::int64_t kept_bytes(const StepPlan& plan) {
  return sum_of(kept_by_purpose(plan));
}

HeldMemory held_memory(const StepPlan& plan) {
  HeldMemory held = held_on_device(plan);
  for (const Buffer& buffer : plan.buffers) {
    const bool locked =
        buffer.memory == MemoryKind::pinned || buffer.memory == MemoryKind::registered;
    if (locked) held.pinned_bytes += buffer.bytes * buffer.slots;
  }
  return held;
}

std::int64_t peak_live_bytes(const StepPlan& plan, const HeldMemory& held) {
  return plan.allocator_simulation ? plan.allocator_simulation->peak_live_bytes : held.most_bytes;
}

StepMemory step_memory_of(const StepPlan& plan) {
  StepMemory memory;
  memory.lifetimes = lifetimes_of(plan);
  const std::vector<Lifetime>& lifetimes = memory.lifetimes.device;
  memory.arena = pack_arena(lifetimes);
  LiveBytes live(plan);
  for (const Lifetime& lifetime : lifetimes) {
    const std::size_t purpose = purpose_of(plan, lifetime.buffer);
    if (lifetime.always()) memory.always[purpose] += lifetime.bytes;
    live.add(lifetime, purpose, lifetime.bytes);
  }
  memory.live = std::move(live).sums();
  const auto peak = std::max_element(
      memory.live.begin(), memory.live.end(),
      [](const BytesByPurpose& a, const BytesByPurpose& b) { return sum_of(a) < sum_of(b); });
  memory.peak_operation = static_cast<std::size_t>(peak - memory.live.begin());
  memory.need_bytes = sum_of(*peak);
  memory.pinned_bytes = most_live_bytes(memory.lifetimes.pinned);
  return memory;
}

}  // namespace stepgate
