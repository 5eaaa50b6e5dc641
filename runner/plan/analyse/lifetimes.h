// SPDX-License-Identifier: MIT
// The range of operations in which every buffer has content that is still needed, in a steady step.
// pack_arena.h places buffers by these ranges.
#pragma once

#include <cstdint>
#include <vector>

#include "plan/lifetime.h"
#include "plan/step_plan.h"

namespace stepgate {

// Blocks of device memory are aligned to this size, as with cudaMalloc and PyTorch's allocator.
constexpr std::int64_t block_alignment_bytes = 512;

constexpr std::int64_t in_blocks(std::int64_t bytes) {
  return (bytes + block_alignment_bytes - 1) / block_alignment_bytes * block_alignment_bytes;
}

// Lifetimes of all buffers. Weights, optimizer state, batches and telemetry are always live. So is
// a buffer that is read before it is written, by byte ranges; a write in only some steps does not
// count for a read in more steps. Every other buffer lives
//   - from its first to its last use in issue order; workspace, which no operation names, from the
//     first kernel that needs it to the last;
//   - through the whole graph when a captured operation uses it, because the graph keeps its
//     address;
//   - from its Allocate to its Release, where the plan has them, also when these act for another
//     step; always where it is used without an Allocate, which an earlier step made;
//   - longer than that when streams need it: until no operation of any stream can access other such
//     memory before the last use is over (issue_order.h defines the order). A buffer whose last use
//     is not over before the next step uses memory is always live.
// So two buffers of device memory whose lifetimes do not overlap may have the same addresses.
Lifetimes lifetimes_of(const StepPlan&);

// Lifetimes of the buffers that the step allocates, each from its Allocate to its Release.
std::vector<Lifetime> allocated_lifetimes_of(const StepPlan&);

// Bytes that a step allocates and never releases, averaged over steps. Sums whole bytes and divides
// last, so that steps that release everything grow by exactly 0.
double growth_bytes_per_step(const StepPlan&);

}  // namespace stepgate
