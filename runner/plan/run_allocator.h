// SPDX-License-Identifier: MIT
// Carries out what a plan allocates and releases, on modelled memory that never ends.
#pragma once

#include <optional>
#include <string>
#include <variant>

#include "plan/allocator_course.h"
#include "plan/memory_event.h"
#include "plan/step_plan.h"

namespace stepgate {

// Why the allocator refuses what stays from step to step, in words: then there is no step.
struct CannotLoad {
  std::string reason;
  std::string way_out;
};

// The plan has an allocator. `history`, where there is one, is told everything.
std::variant<AllocatorCourse, CannotLoad> run_allocator(const StepPlan&, std::int64_t steps,
                                                        MemoryHistory* history = nullptr);

}  // namespace stepgate
