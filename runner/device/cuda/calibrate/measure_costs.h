// SPDX-License-Identifier: MIT
// Measures the costs of a device profile on a CostBench. All functions throw DeviceError.
#pragma once

#include <cstdint>

#include "device/cuda/calibrate/cost_bench.h"
#include "device/profile.h"
#include "plan/step_plan.h"

namespace stepgate {

// Measures the costs of calls on the host, except the wake-up from a wait.
HostCosts measure_host_costs(const CostBench&);

// Costs of work on the device, and the host's wake-up from a wait.
struct DeviceCosts {
  ComputeCosts compute;
  std::int64_t wake_up_nanoseconds = 0;
};
DeviceCosts measure_device_costs(const CostBench&, const HostCosts&);

// Cost of copies to the device from pinned or pageable memory.
CopyCost measure_copy_costs(const CostBench&, MemoryKind, const HostCosts&);

// The largest pageable copy that returns while a long kernel holds its stream.
std::int64_t measure_staging_bytes(const CostBench&);

}  // namespace stepgate
