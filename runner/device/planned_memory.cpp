// SPDX-License-Identifier: MIT
#include "device/planned_memory.h"

#include <fmt/format.h>

#include "base/text/units.h"
#include "device/device.h"
#include "plan/count/step_memory.h"

namespace stepgate {

MemoryUse planned_memory(const StepPlan& plan, const HeldMemory& held) {
  return {.allocated_bytes = held.most,
          .peak_allocated_bytes = peak_live_bytes(plan, held),
          .peak_reserved_bytes = plan.allocator_simulation
                                     ? plan.allocator_simulation->peak_reserved_bytes
                                     : held.most_bytes,
          .pinned_bytes = held.pinned_bytes};
}

MemoryUse planned_memory(const StepPlan& plan) {
  return planned_memory(plan, held_memory(plan));
}

void require_memory(const StepPlan& plan, const MemoryThere& there) {
  const auto needed = static_cast<double>(peak_live_bytes(plan, held_memory(plan)));
  if (needed <= static_cast<double>(there.free_bytes)) return;
  const ModelKind kind = plan.model.kind;
  const char* const large = kind == ModelKind::chase ? "'batch.size' or 'model.footprint'"
                            : kind == ModelKind::resnet || kind == ModelKind::unet
                                ? "'batch.size', 'model.image' or 'model.width'"
                                : "'batch.size', 'model.hidden' or 'model.layers'";
  throw DeviceMemoryFull(fmt::format(
      "variant '{}' needs {:.0f} MiB of device memory, but only {:.0f} of {:.0f} MiB are free; "
      "lower {}, or require 'free_memory' in the scenario",
      plan.variant, needed / mebibyte, static_cast<double>(there.free_bytes) / mebibyte,
      static_cast<double>(there.total_bytes) / mebibyte, large));
}

}  // namespace stepgate
