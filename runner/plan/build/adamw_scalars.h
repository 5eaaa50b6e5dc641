// SPDX-License-Identifier: MIT
// AdamW's rates in every plan: learning rate, beta 1, beta 2, epsilon, weight decay. Chosen so that
// thousands of steps over a few batches stay finite in every dtype.
#pragma once

#include "kernels/kernel.h"

namespace stepgate {

constexpr KernelScalars adamw_scalars = {1e-4, 0.9, 0.999, 1e-8, 0.01};

}  // namespace stepgate
