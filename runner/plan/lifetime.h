// SPDX-License-Identifier: MIT
// How long buffers hold something that is still needed, as values. analyse/lifetimes.h finds them,
// and allocate/pack_arena.h decides where the buffers may lie.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace stepgate {

// The reason for a lifetime. With the first reasons a buffer is always live.
enum class LivenessReason {
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

std::string_view in_words(LivenessReason);

// Inclusive, as indices into StepPlan::operations.
struct Lifetime {
  int buffer = 0;  // index into StepPlan::buffers
  std::int64_t slots = 1;
  std::int64_t bytes = 0;  // of these slots; device memory in whole blocks
  int first = 0;
  int last = 0;
  LivenessReason because = LivenessReason::it_is_kept;

  bool always() const { return because <= LivenessReason::nobody_names_it; }
  bool operator==(const Lifetime&) const = default;
};

// A buffer has one lifetime, or several where some of its slots live longer than others.
struct Lifetimes {
  std::vector<Lifetime> device;  // in the order of the buffers
  std::vector<Lifetime> pinned;  // host memory: pinned, or registered
};

// Offsets of lifetimes in one arena.
struct Arena {
  std::vector<std::int64_t> offsets_bytes;  // of the lifetimes, in their order
  std::int64_t bytes = 0;                   // of the whole
};

}  // namespace stepgate
