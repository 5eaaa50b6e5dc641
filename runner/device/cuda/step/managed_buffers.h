// SPDX-License-Identifier: MIT
// Managed memory of one step, within bounds, and what the driver is told of it.
#pragma once

#include <cstdint>
#include <vector>

#include "device/cuda/handles.h"
#include "plan/step_plan.h"

namespace stepgate {

class ManagedBuffers {
 public:
  // Throws DeviceError where the plan wants more managed memory than is modest, or where the host
  // may not touch it while the device works.
  explicit ManagedBuffers(const StepPlan&);

  // Lives as long as this. Throws DeviceError.
  void* take(const Buffer&);

  std::int64_t bytes() const { return bytes_; }

 private:
  std::vector<ManagedMemory> owned_;
  std::int64_t bytes_ = 0;
};

}  // namespace stepgate
