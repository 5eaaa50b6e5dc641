// SPDX-License-Identifier: MIT
// From which operation to which every buffer holds something that is still needed, in a steady
// step. pack_arena.h decides where it lies meanwhile.
#pragma once

#include <cstdint>
#include <vector>

#include "plan/lifetime.h"
#include "plan/step_plan.h"

namespace stepgate {

// Blocks of device memory start at multiples of this, as those of cudaMalloc and of PyTorch's
// allocator do.
constexpr std::int64_t block_alignment_bytes = 512;

constexpr std::int64_t in_blocks(std::int64_t bytes) {
  return (bytes + block_alignment_bytes - 1) / block_alignment_bytes * block_alignment_bytes;
}

// Weights, optimizer state, batches and bookkeeping are always live, and so is what is read before
// it is written (by byte ranges; a write that happens in some steps only does not count for a read
// in more of them). Everything else lives
//  - from its first to its last use in the order of the host; workspace, which no operation names,
//    from the first kernel that needs it to the last;
//  - through the whole graph when a captured operation uses it, because the graph keeps its
//    address;
//  - from its Allocate to its Release, where the plan has them, also when these act for another
//  step; always where it is used without an Allocate, which was another step's;
//  - longer than that when streams need it: until no operation of any stream can touch other such
//    memory before its last use is over (issue_order.h says what orders two operations). What is
//    not over before the next step begins to use memory is always live.
// So two lifetimes of device memory that do not meet may have the same addresses.
Lifetimes lifetimes_of(const StepPlan&);

// Lifetimes of the buffers that the step allocates itself, each from its Allocate to its Release.
std::vector<Lifetime> allocated_lifetimes_of(const StepPlan&);

// Bytes that a step allocates and never releases, on average.
double growth_bytes_per_step(const StepPlan&);

}  // namespace stepgate
