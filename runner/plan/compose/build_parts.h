// SPDX-License-Identifier: MIT
// build_step_plan.cpp adds these to a model: reductions over ranks, evaluation, saving, the waits
// and reads of the host, and allocations.
#pragma once

#include <cstddef>

#include "plan/compose/build_input.h"
#include "plan/compose/build_model.h"
#include "plan/compose/step_builder.h"
#include "plan/step_plan.h"
#include "scenario/scenario.h"

namespace stepgate {

// Inserts the reductions of gradients among the operations from `first` on, which belong to one
// model. Each reduction is issued when its gradients are complete and the earlier reductions are
// issued, or as 'ranks.overlap' says. What reads a bucket's gradients after the backward pass waits
// for the reduction of that bucket. Does nothing for one rank.
void build_reduction(StepBuilder&, const Knobs&, const LearnedParts&, std::size_t first);

// Inserts the broadcasts and small reductions of 'ranks' into the forward passes among the
// operations from `first` on, which belong to one model. The compute stream waits for each
// reduction, and for all broadcasts together. One of sync_each_part's parts after the first
// broadcasts as well, as a forward pass of DistributedDataParallel does after gradients were
// reduced.
void build_forward_collectives(StepBuilder&, const Knobs&, std::size_t first);

// Appends the evaluation of [eval] on the step's batch, with these weights of an mlp. Afterwards
// the batch is no longer read: its event is recorded again, and its buffer is released if the step
// must release it. The evaluation is never part of the step's graph.
void build_evaluation(StepBuilder&, const Knobs&, int weights, const InputParts&,
                      std::int64_t sample_bytes);

// Appends the operations of [log]; `loss` is the buffer with the step's loss.
void build_log(StepBuilder&, const Knobs&, int loss);

// Appends the copies of [save]: weights and the optimizer's state, as far as they are on the device
// for good, to the host. Copies beside the next steps also make those steps' updates wait for them.
void build_save(StepBuilder&, const SaveKnobs&);

// Inserts the waits of [sync] among the operations built so far.
void build_sync(StepBuilder&, const Knobs&, int loss);

// Appends allocations and releases. Activations are allocated before their first use and released
// after their last use, in every step or when the batch size changes; a leak omits the release.
// Weights, optimizer state and batches stay. Gradients also stay unless `gives_gradients_back`
// (own_gradients.h): then they are allocated before their first use and released after the update.
// Also appends the step's leaks, its temporary tensors and empty_cache calls.
void build_allocations(StepPlan&, const AllocKnobs&, bool gives_gradients_back = false);

// Converts a cap given as a share of device memory to bytes; no cap while that memory is unknown.
MemoryCap known_cap(const MemoryCap&, std::optional<std::int64_t> device_memory_bytes);

// Bytes that a known cap allows; nullopt where there is no cap.
std::optional<std::int64_t> cap_bytes(const StepPlan&, const MemoryCap&);

// The allocator that serves the step, with its limit in bytes.
std::optional<AllocatorPlan> allocator_plan(const AllocKnobs&, std::optional<std::int64_t> cap);

// The bytes that the cap leaves for the driver's pool after all other memory; nullopt without a
// cap.
std::optional<std::int64_t> pool_cap_bytes(const StepPlan&, const AllocKnobs&,
                                           std::optional<std::int64_t> cap);

}  // namespace stepgate
