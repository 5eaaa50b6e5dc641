// SPDX-License-Identifier: MIT
// Counts the parts of a step, from its plan and from what a device did, for a comparison with
// another build's counts. Compares nothing itself.
#pragma once

#include <cstdint>
#include <optional>

#include "compare/worker/protocol.h"
#include "device/device.h"
#include "plan/planned_step.h"

namespace stepgate {

// Counts from the plan alone, without loading anything.
StepCounts planned_counts(const PlannedStep&);

struct CountRequest {
  bool times = false;  // measure the parts of a step, with exclusive use of the device
  // Chooses the processor that issues the steps (base/process/one_cpu.h); absent: any.
  std::optional<std::uint64_t> cpu_draw = {};
};
// Counts as planned_counts does, and what the device does when it runs `carried_out`, which equals
// the plan except in tests: one trace where the device can trace, and the first losses. Throws
// DeviceError.
StepCounts counts_of(Device&, const PlannedStep&, const PlannedStep& carried_out,
                     const CountRequest&);

}  // namespace stepgate
