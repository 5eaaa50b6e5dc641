// SPDX-License-Identifier: MIT
// Counts what a step consists of, by its plan and by what a device did, so that another build can
// be asked the same. It compares nothing.
#pragma once

#include <cstdint>
#include <optional>

#include "compare/worker/protocol.h"
#include "device/device.h"
#include "plan/planned_step.h"

namespace stepgate {

// Nothing is loaded.
StepCounts planned_counts(const PlannedStep&);

struct CountRequest {
  bool times = false;  // of the parts of a step, for which nothing else may use the device
  // Chooses the processor that issues the steps (base/process/one_cpu.h); absent: any.
  std::optional<std::uint64_t> cpu_draw = {};
};
// Counts as planned_counts does, and by what the device does when it is given `carried_out`, which
// is the plan itself but for tests. That is one trace where the device can trace, and the first
// losses. Throws DeviceError.
StepCounts counts_of(Device&, const PlannedStep&, const PlannedStep& carried_out,
                     const CountRequest&);

}  // namespace stepgate
