// SPDX-License-Identifier: MIT
// CUDA status codes become DeviceError, with what was being done, and an error after which the
// device answers nothing else becomes DeviceLost.
#pragma once

#include <cublasLt.h>
#include <cuda_runtime_api.h>

#include <optional>
#include <source_location>
#include <string>
#include <string_view>

#include "device/cuda/cuda_failure.h"

namespace stepgate {

// Throws DeviceError "cannot <doing>: <CUDA's name and text> (file:line)" unless the status is
// success; DeviceMemoryFull where the device has no memory for it.
void check(cudaError_t status, std::string_view doing,
           std::source_location place = std::source_location::current());
void check(cublasStatus_t status, std::string_view doing,
           std::source_location place = std::source_location::current());

CudaFailure failure_of(cudaError_t);

// The failure with which the device answers everything from now on; nothing while it works. Waits
// for its work. The next call starts clean where that can be.
std::optional<CudaFailure> failure_for_good();

// For a handler, in the middle of whatever uses the GPU: throws what is being handled on, as
// DeviceError where a kernel's launcher or a library threw it, and as DeviceLost where the device
// answers nothing else from now on. `at` is where it was noticed, in words.
[[noreturn]] void rethrow_from_gpu(const std::string& at);

}  // namespace stepgate
