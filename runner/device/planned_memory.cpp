// SPDX-License-Identifier: MIT
#include "device/planned_memory.h"

#include "plan/counted_metrics.h"
#include "plan/step_memory.h"

namespace stepgate {

MemoryUse planned_memory(const StepPlan& plan) {
  const HeldMemory held = held_memory(plan);
  return {.allocated_bytes = held.most,
          .peak_allocated_bytes = plan.course ? plan.course->peak_live_bytes : held.most_bytes,
          .peak_reserved_bytes = plan.course ? plan.course->peak_reserved_bytes : held.most_bytes,
          .pinned_bytes = static_cast<std::int64_t>(counted(plan, Metric::host_pinned).value())};
}

}  // namespace stepgate
