// SPDX-License-Identifier: MIT
// Initial contents of device memory, computed on the device: the same bits as fill_contents
// (device/contents.h), without a copy from the host.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "plan/step_plan.h"

namespace stepgate {

// Enqueues the content of one slot of the buffer. Writes all its bytes to `to`, device memory
// aligned as by cudaMalloc. `seed` is the plan's seed. Returns the status of the launches.
cudaError_t fill_on_device(const Buffer&, std::int64_t slot, std::uint64_t seed, void* to,
                           cudaStream_t);

// Whether the program has code for the current device, or PTX that its driver compiles. Does not
// throw; assumes that the code exists if CUDA cannot say.
bool has_code_for_this_device();

}  // namespace stepgate
