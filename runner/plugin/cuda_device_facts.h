// SPDX-License-Identifier: MIT
// The facts of a GPU that libraries of kernels are told.
#pragma once

#include "plugin/open_library.h"

namespace stepgate {

// The facts of the GPU with this index. Throws std::runtime_error where CUDA does not tell them.
DeviceFacts facts_of_cuda_device(int index);

}  // namespace stepgate
