// SPDX-License-Identifier: MIT
// Creates the CUDA streams of plans.
#pragma once

#include <map>
#include <string>
#include <utility>

#include "device/cuda/cuda_device_memory.h"
#include "device/cuda/handles.h"
#include "plan/step_plan.h"

namespace stepgate {

// Streams of one loaded step, or of several interleaved steps, which share streams of the same
// name.
class CudaStreams {
 public:
  // Returns the streams that the plan lists; creates those that no earlier plan has requested.
  // Throws DeviceError.
  StepStreams of(const StepPlan&);

 private:
  std::map<std::pair<std::string, StreamKind>, CudaStream> created_;
};

}  // namespace stepgate
