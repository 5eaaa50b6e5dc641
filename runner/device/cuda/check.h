// SPDX-License-Identifier: MIT
// Converts CUDA status codes to DeviceError, with the failed action in the message. An error after
// which the device answers no other call becomes DeviceLost.
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

// The permanent failure with which the device answers all calls; nullopt while it works. Waits for
// its work. Resets the last error where that is possible.
std::optional<CudaFailure> failure_for_good();

// Rethrows the current exception in a handler for errors of GPU code. Errors of a kernel's launcher
// or a library become DeviceError, and DeviceLost if the failure is permanent. `at` says where the
// error was noticed.
[[noreturn]] void rethrow_from_gpu(const std::string& at);

}  // namespace stepgate
