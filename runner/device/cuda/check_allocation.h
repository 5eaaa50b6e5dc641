// SPDX-License-Identifier: MIT
// The error when the device has no memory left for a buffer.
#pragma once

#include <cuda_runtime.h>

#include "plan/step_plan.h"

namespace stepgate {

// Throws DeviceError with what was asked and what was free.
void check_allocation(cudaError_t, const Buffer&);

}  // namespace stepgate
