// SPDX-License-Identifier: MIT
#include "plugin/tables/open_cubin.h"

#include <cuda_runtime.h>
#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

namespace stepgate {
namespace {

void require(cudaError_t status, const Cubin& cubin, std::string_view cannot,
             const DeviceFacts& device) {
  if (status == cudaSuccess) return;
  (void)cudaGetLastError();
  throw KernelLibraryError(fmt::format("'{}' of '{}' {}: {}", cubin.launch().entry,
                                       cubin.file().path, cannot,
                                       device.in_words(status, device.capability)));
}

dim3 in_cuda(const std::array<std::uint32_t, 3>& three) {
  return {three[0], three[1], three[2]};
}

}  // namespace

void OpenCubin::load(const DeviceFacts& device) {
  cudaLibrary_t library = nullptr;
  require(cudaLibraryLoadData(&library, cubin_.file().bytes.data(), nullptr, nullptr, 0, nullptr,
                              nullptr, 0),
          cubin_, "cannot be loaded", device);
  require(cudaLibraryGetKernel(&kernel_, library, cubin_.launch().entry.c_str()), cubin_,
          "is not found in what was loaded", device);
}

PreparedKernel OpenCubin::prepare(const KernelRequest& asked, const DeviceFacts& device) {
  CubinCall call = cubin_.call(asked, device);
  if (kernel_ == nullptr) load(device);
  if (call.shared_bytes > most_shared_bytes_) {
    require(cudaFuncSetAttribute(kernel_, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                 static_cast<int>(call.shared_bytes)),
            cubin_, fmt::format("cannot have {} bytes of shared memory", call.shared_bytes),
            device);
    most_shared_bytes_ = call.shared_bytes;
  }
  const auto launch = [this, call = std::move(call), device](void* const* operands,
                                                             CUstream_st* stream) {
    std::vector<std::uint64_t> values;
    for (const CubinCall::Argument& argument : call.arguments) {
      values.push_back(argument.operand == no_operand
                           ? argument.bits
                           : reinterpret_cast<std::uintptr_t>(operands[argument.operand]));
    }
    std::vector<void*> places;
    for (std::uint64_t& value : values) places.push_back(&value);
    require(cudaLaunchKernel(kernel_, in_cuda(call.grid), in_cuda(call.block), places.data(),
                             call.shared_bytes, stream),
            cubin_, "failed to launch", device);
  };
  return {.launch = launch};
}

}  // namespace stepgate
