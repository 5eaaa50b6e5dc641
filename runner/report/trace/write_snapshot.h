// SPDX-License-Identifier: MIT
// Writes what a step's allocator did as torch.cuda.memory._dump_snapshot writes it: for PyTorch's
// memory viewer (pytorch.org/memory_viz) and torch.cuda._memory_viz.
#pragma once

#include <filesystem>
#include <string>

#include "plan/memory_event.h"
#include "plan/step_plan.h"

namespace stepgate {

// "out/m.pickle" becomes "out/m.<scenario>.<variant>.pickle".
std::filesystem::path snapshot_file(const std::filesystem::path& asked_for, const StepPlan&);

// The bytes of the file. Events have their number as time, since a plan has none; the frame of an
// allocation is the operation that asked for it, its step and the buffer.
std::string snapshot_pickle(const StepPlan&, const MemoryHistory&);

}  // namespace stepgate
