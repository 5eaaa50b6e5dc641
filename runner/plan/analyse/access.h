// SPDX-License-Identifier: MIT
// The bytes that an operation reads and writes, and when. find_races, lifetimes and pictures use
// them.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "plan/step_plan.h"

namespace stepgate {

struct BufferAccess {
  BufferUse use;
  Access access = Access::read;
};

// Whether two uses share a byte, if both are of the same slot and rank.
bool overlap(const BufferUse&, const BufferUse&);

// The operation's accesses in the order of its operands. Allocation, release and pinning count as
// writes of the whole slot; buffers that the operation only keeps count as reads.
std::vector<BufferAccess> accesses_of(const StepPlan&, const Operation&);

// The error of a launch according to its kernel's declaration: a wrong number of operands, an
// operand of a wrong size, or one that overwrites another that it may not replace. nullopt if there
// is none.
std::optional<std::string_view> fault_of(const LaunchKernel&);

// The bytes that the launch moves and its arithmetic operations.
KernelWork work_of(const LaunchKernel&);

// Whether source or destination is pageable host memory. Then the call returns to the host only
// after that memory was read or written.
bool is_pageable(const StepPlan&, const CopyBytes&);

// Whether the buffer is device memory whose content is needed only within a step, under a name of
// its turn.
inline bool is_temporary(const Buffer& buffer) {
  return buffer.memory == MemoryKind::device &&
         (buffer.purpose == Purpose::activations || buffer.purpose == Purpose::staging);
}

bool uses_managed_memory(const StepPlan&);

// Whether the operation launches a kernel that needs workspace, which no operation names.
bool uses_workspace(const Operation&);

// Whether the operation acts for this step, if no step before `first_step` runs.
inline bool acts_for(const Operation& operation, std::int64_t step, std::int64_t first_step = 0) {
  return step >= first_step &&
         (operation.every == 1 || (step + 1) % operation.every == operation.turn);
}

// The plan of one turn of the batches as if every step were like it, and that of the turn with the
// largest batch. The plan itself where batches do not alternate. Buffers that last over steps have
// no Allocate in the result.
StepPlan turn_alone(const StepPlan&, std::int64_t turn);
StepPlan largest_turn(const StepPlan&);

// The most steps that any operation acts ahead; the host starts this many steps before step 0.
int prefetch_depth(const StepPlan&);

}  // namespace stepgate
