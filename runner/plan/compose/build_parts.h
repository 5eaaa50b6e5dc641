// SPDX-License-Identifier: MIT
// build_step_plan.cpp adds these to a model: reductions over ranks, evaluation, the waits and reads
// of the host, and allocations.
#pragma once

#include <cstddef>

#include "plan/compose/build_input.h"
#include "plan/compose/build_model.h"
#include "plan/compose/step_builder.h"
#include "plan/step_plan.h"
#include "scenario/scenario.h"

namespace stepgate {

// Puts the reductions into the operations from `first` on, which are those of one model: each as
// soon as its gradients are there and those before it are issued, or as 'ranks.overlap' has it; the
// update waits for the last. Nothing for one rank.
void build_reduction(StepBuilder&, const Knobs&, const LearnedParts&, std::size_t first);

// Appends the evaluation of a step by [eval], on the batch that the step holds: an mlp of these
// weights. Afterwards the batch has been read for good, is said to be consumed once more, and is
// released where the step must do so. Never part of the step's graph.
void build_evaluation(StepBuilder&, const Knobs&, int weights, const InputParts&,
                      std::int64_t sample_bytes);

// Appends what [log] asks for; `loss` is the buffer with the step's loss.
void build_log(StepBuilder&, const Knobs&, int loss);

// Puts the waits of [sync] where they belong among the operations built so far.
void build_sync(StepBuilder&, const Knobs&, int loss);

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

// The allocator that serves the step, and its limit.
std::optional<AllocatorPlan> allocator_plan(const AllocKnobs&, std::optional<std::int64_t> cap);

// Bytes that the cap leaves for the driver's pool after all other memory; nothing where there is no
// cap.
std::optional<std::int64_t> pool_cap_bytes(const StepPlan&, const AllocKnobs&,
                                           std::optional<std::int64_t> cap);

}  // namespace stepgate
