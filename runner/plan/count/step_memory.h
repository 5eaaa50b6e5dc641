// SPDX-License-Identifier: MIT
// What memory a step needs and what it takes by its plan, added up over the operations, for people
// and for metrics. What a device really takes is device/trace.h's.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "plan/allocate/pack_arena.h"
#include "plan/analyse/lifetimes.h"

namespace stepgate {

// Bytes of device memory by Purpose.
using BytesByPurpose = std::array<std::int64_t, purpose_count>;

std::int64_t sum_of(const BytesByPurpose&);

// Device memory that the plan itself keeps from step to step, every buffer its own.
std::int64_t kept_bytes(const StepPlan&);

// What a device holds that carries out the plan as it is: every buffer its own for good, but for
// those that the step allocates and releases.
struct HeldMemory {
  std::int64_t most_bytes = 0;  // at one moment
  BytesByPurpose most{};        // of each purpose, each at its own moment
};

HeldMemory held_memory(const StepPlan&);

// What would do, by the lifetimes of the buffers.
struct StepMemory {
  Lifetimes lifetimes;
  Arena arena;                         // of the lifetimes on the device
  BytesByPurpose always{};             // live all the time; part of `live`
  std::vector<BytesByPurpose> live;    // while each operation is under way; never empty
  std::size_t peak_operation = 0;      // the first at which the most bytes are live
  std::int64_t need_bytes = 0;         // so many: no packing is smaller
  std::int64_t page_locked_bytes = 0;  // host memory, the most at once
};

// A plan without operations has one moment, at which everything that it keeps is live.
StepMemory step_memory_of(const StepPlan&);

}  // namespace stepgate
