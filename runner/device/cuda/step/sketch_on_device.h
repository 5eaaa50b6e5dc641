// SPDX-License-Identifier: MIT
// The kernel that sums a gradient with random signs (device/gradients.h).
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "device/gradients.h"

namespace stepgate {

// Number of values that a block writes: the sum of squares, then the projections.
inline constexpr std::int64_t sketch_numbers = 1 + std::int64_t{gradient_projections};

// Returns the number of blocks for so many elements.
std::int64_t sketch_blocks(std::int64_t elements);

// Enqueues the sums over a part of `operand`, whose elements have this dtype. Each block writes
// sketch_numbers fp32 to `sums`, after those of the block before. `operand` and `sums` must be
// accessible from the device. Returns the status of the launch.
cudaError_t sketch_on_device(const GradientPart&, const void* operand, DType, float* sums,
                             cudaStream_t);

}  // namespace stepgate
