// SPDX-License-Identifier: MIT
// Places for buffers in one piece of memory, so that those that live at once do not overlap.
#pragma once

#include <cstdint>
#include <span>

#include "plan/lifetime.h"
#include "plan/step_plan.h"

namespace stepgate {

// Greedy, as compilers for neural networks plan their memory (Pisarchyk and Lee: Efficient Memory
// Management for Deep Neural Net Inference, 2020): always live ones at the bottom, then the largest
// first, each in the smallest gap that holds it between those that are live with it, or on top.
// Where that is above the bound, also the longest first and those of the most bytes times
// operations first; the smallest of the three. Deterministic, and no matter in which order the
// lifetimes are given. Their bytes are whole blocks, so every offset is one.
Arena pack_arena(std::span<const Lifetime>);

// The most bytes that are live at one operation: no packing is smaller.
std::int64_t most_live_bytes(std::span<const Lifetime>);

// Moves activations and staging memory that operations name into one buffer, "arena"; what they
// were keeps its index and has no bytes. Gradients stay where a reader finds them after the step,
// and so does what an allocator owns. Where batches take turns, each turn has places of its own.
StepPlan in_arena(StepPlan);

}  // namespace stepgate
