// SPDX-License-Identifier: MIT
// The driver's stream-ordered memory pool of one step, so that what one variant keeps does not
// serve another, and what to say when it refuses.
#pragma once

#include <cstdint>
#include <string>

#include "device/cuda/handles.h"
#include "plan/step_plan.h"

namespace stepgate {

class StepPool {
 public:
  // With the plan's threshold and cap. Throws DeviceError.
  explicit StepPool(const StepPlan&);

  // In the stream's order. Throws DeviceError; where the pool refuses, with what it had.
  void* take(const Buffer&, std::int64_t step, cudaStream_t) const;

  // The most that it has taken from the device.
  std::int64_t most_reserved_bytes() const { return bytes(cudaMemPoolAttrReservedMemHigh); }

 private:
  std::int64_t bytes(cudaMemPoolAttr) const;
  [[noreturn]] void refuse(const Buffer&, std::int64_t step) const;

  const StepPlan& plan_;
  MemoryPool pool_;
};

}  // namespace stepgate
