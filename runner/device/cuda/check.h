// SPDX-License-Identifier: MIT
// CUDA status codes become DeviceError, with what was being done.
#pragma once

#include <cublasLt.h>
#include <cuda_runtime_api.h>

#include <source_location>
#include <string_view>

namespace stepgate {

// Throws DeviceError "cannot <doing>: <CUDA's name and text> (file:line)" unless the status is
// success.
void check(cudaError_t status, std::string_view doing,
           std::source_location place = std::source_location::current());
void check(cublasStatus_t status, std::string_view doing,
           std::source_location place = std::source_location::current());

}  // namespace stepgate
