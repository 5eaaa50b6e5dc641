// SPDX-License-Identifier: MIT
// Places for buffers in one piece of memory, so that those that live at once do not overlap.
#pragma once

#include <cstdint>
#include <span>

#include "plan/lifetime.h"
#include "plan/step_plan.h"

namespace stepgate {

// A greedy packing, as compilers for neural networks plan memory (Pisarchyk and Lee: Efficient
// Memory Management for Deep Neural Net Inference, 2020). Buffers that are always live are at the
// bottom. Then the largest buffer comes first, each in the smallest sufficient gap between buffers
// that are live at the same time, or on top. If the result is above the lower bound, two other
// orders are tried: longest first, and largest bytes times operations first. The smallest of the
// three counts. Deterministic and independent of the order of the lifetimes. Sizes and offsets are
// multiples of whole blocks.
Arena pack_arena(std::span<const Lifetime>);

// The most bytes that are live at one operation: a lower bound for any packing.
std::int64_t most_live_bytes(std::span<const Lifetime>);

// Moves activations and staging memory that operations name into one buffer, "arena". The old
// buffers keep their indices, with no bytes. Gradients stay, since they are read after the step,
// and so do buffers that an allocator owns. Each turn of batches has its own offsets.
StepPlan in_arena(StepPlan);

}  // namespace stepgate
