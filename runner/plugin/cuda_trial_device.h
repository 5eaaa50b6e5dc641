// SPDX-License-Identifier: MIT
// A GPU on which kernels of libraries are tried.
#pragma once

#include <memory>

#include "plugin/trial_device.h"

namespace stepgate {

// Opens the GPU of this index, with a stream that does not wait for the legacy one. Throws
// KernelLibraryError where there is no GPU, and std::runtime_error where a call of ours fails.
std::unique_ptr<TrialDevice> make_cuda_trial_device(int index);

}  // namespace stepgate
