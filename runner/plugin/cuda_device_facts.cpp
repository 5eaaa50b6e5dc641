// SPDX-License-Identifier: MIT
#include "plugin/cuda_device_facts.h"

#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include <stdexcept>

namespace stepgate {
namespace {

std::string in_words_of_cuda(int status, std::uint32_t capability) {
  const auto error = static_cast<cudaError_t>(status);
  if (error == cudaErrorNoKernelImageForDevice) {
    return fmt::format(
        "it has no code for a GPU of compute capability {}.{}; build it with "
        "-gencode arch=compute_{},code=sm_{}",
        capability / 10, capability % 10, capability, capability);
  }
  return fmt::format("{}, {}", cudaGetErrorName(error), cudaGetErrorString(error));
}

std::uint32_t attribute(cudaDeviceAttr which, int index) {
  int value = 0;
  if (const cudaError_t status = cudaDeviceGetAttribute(&value, which, index);
      status != cudaSuccess) {
    throw std::runtime_error(
        fmt::format("cannot ask for a fact of the GPU: {}", cudaGetErrorString(status)));
  }
  return static_cast<std::uint32_t>(value);
}

}  // namespace

DeviceFacts facts_of_cuda_device(int index) {
  return {.index = index,
          .capability = 10 * attribute(cudaDevAttrComputeCapabilityMajor, index) +
                        attribute(cudaDevAttrComputeCapabilityMinor, index),
          .multiprocessors = attribute(cudaDevAttrMultiProcessorCount, index),
          .shared_bytes = attribute(cudaDevAttrMaxSharedMemoryPerBlockOptin, index),
          .in_words = in_words_of_cuda};
}

}  // namespace stepgate
