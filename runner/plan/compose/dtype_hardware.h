// SPDX-License-Identifier: MIT
// Which GPUs multiply which numbers, and what scenario files call them.
#pragma once

#include <string_view>

#include "kernels/kernel.h"

namespace stepgate {

// Compute capability since which tensor cores take such numbers (CUDA C++ programming guide,
// arithmetic instructions); 0: plain arithmetic.
double least_compute_capability(DType);

// "bf16"
std::string_view word_of(DType);

}  // namespace stepgate
