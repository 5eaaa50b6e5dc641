// SPDX-License-Identifier: MIT
// From which operation to which every buffer holds something that is still needed, in a steady
// step. Where it lies meanwhile is pack_arena.h's.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "plan/step_plan.h"

namespace stepgate {

// Blocks of device memory start at multiples of this, as those of cudaMalloc and of PyTorch's
// allocator do.
constexpr std::int64_t block_alignment_bytes = 512;

constexpr std::int64_t in_blocks(std::int64_t bytes) {
  return (bytes + block_alignment_bytes - 1) / block_alignment_bytes * block_alignment_bytes;
}

// Why something is live as long as it is. The first ones are always live.
enum class LiveBecause {
  it_is_kept,           // weights, state, batches, what is counted; host memory
  it_is_carried_over,   // read before it is written: the step before has written it
  it_spans_steps,       // its uses act for different steps
  nothing_orders_it,    // another stream may touch other memory before its last use is over
  nobody_names_it,      // no operation says that it uses it
  it_is_used,           // from its first to its last use
  the_graph_uses_it,    // from the beginning to the end of the graph
  it_is_allocated,      // from its Allocate to its Release
  it_is_never_released  // one more a step, from its Allocate on
};

std::string_view in_words(LiveBecause);

// Inclusive, as indices into StepPlan::operations.
struct Lifetime {
  int buffer = 0;  // index into StepPlan::buffers
  std::int64_t slots = 1;
  std::int64_t bytes = 0;  // of these slots; device memory in whole blocks
  int first = 0;
  int last = 0;
  LiveBecause because = LiveBecause::it_is_kept;

  bool always() const { return because <= LiveBecause::nobody_names_it; }
  bool operator==(const Lifetime&) const = default;
};

// A buffer has one lifetime, or several where some of its slots live longer than others.
struct Lifetimes {
  std::vector<Lifetime> device;       // in the order of the buffers
  std::vector<Lifetime> page_locked;  // host memory: pinned, or registered
};

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

// Of what the step allocates itself alone, as it does so: from the Allocate to the Release.
std::vector<Lifetime> allocated_lifetimes_of(const StepPlan&);

// Bytes that a step allocates and never releases, on average.
double growth_bytes_per_step(const StepPlan&);

}  // namespace stepgate
