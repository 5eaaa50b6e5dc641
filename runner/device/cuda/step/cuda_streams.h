// SPDX-License-Identifier: MIT
// The streams of plans on the GPU.
#pragma once

#include <map>
#include <string>
#include <utility>

#include "device/cuda/cuda_device_memory.h"
#include "device/cuda/handles.h"
#include "plan/step_plan.h"

namespace stepgate {

// Streams of one loaded step, or of several that run interleaved, which share those that they call
// alike.
class CudaStreams {
 public:
  // The streams that the plan lists, created unless another plan has asked for them before. Throws
  // DeviceError.
  StepStreams of(const StepPlan&);

 private:
  std::map<std::pair<std::string, StreamKind>, CudaStream> created_;
};

}  // namespace stepgate
