// SPDX-License-Identifier: MIT
// Turns buffers of a finished step into ones that come and go, as [alloc] asks.
#pragma once

#include "plan/step_plan.h"
#include "scenario/scenario.h"

namespace stepgate {

// Activations are allocated and released once a step, around their first and last use, or when the
// batch's size is not that of the step before; released where that is not forgotten. Weights,
// state and batches stay, and so do gradients unless they are given back (own_gradients.h): those
// are allocated around their first use and released when the update is over. Also what a step
// leaks, its short-lived tensors, and when the cache is emptied.
void build_allocations(StepPlan&, const AllocKnobs&, bool gives_gradients_back = false);

// A cap that is a share of a device's memory in bytes; none while that memory is not known.
MemoryCap known_cap(const MemoryCap&, std::optional<std::int64_t> device_memory_bytes);

// Bytes that a known cap allows; nothing where there is none.
std::optional<std::int64_t> cap_bytes(const StepPlan&, const MemoryCap&);

// Which allocator serves the step, and how much it may take.
std::optional<AllocatorPlan> allocator_plan(const AllocKnobs&, std::optional<std::int64_t> cap);

// Bytes that the cap leaves for the driver's pool beside what is not in the pool; nothing where
// there is no cap.
std::optional<std::int64_t> pool_cap_bytes(const StepPlan&, const AllocKnobs&,
                                           std::optional<std::int64_t> cap);

}  // namespace stepgate
