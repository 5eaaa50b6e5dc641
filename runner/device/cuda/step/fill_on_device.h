// SPDX-License-Identifier: MIT
// Initial contents of device memory, made where they are needed: the bits of fill_contents
// (device/contents.h) without a copy from the host.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "plan/step_plan.h"

namespace stepgate {

// Enqueues the content of one slot of the buffer: all of its bytes at `to`, which is device memory
// aligned as cudaMalloc aligns it. `seed` is the plan's. The status is that of the launches.
cudaError_t fill_on_device(const Buffer&, std::int64_t slot, std::uint64_t seed, void* to,
                           cudaStream_t);

// Whether the program has code for the current device, or PTX that its driver compiles. Does not
// throw; assumes that the code exists if CUDA cannot say.
bool has_code_for_this_device();

}  // namespace stepgate
