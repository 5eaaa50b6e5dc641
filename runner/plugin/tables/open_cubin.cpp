// SPDX-License-Identifier: MIT
#include "plugin/tables/open_cubin.h"

#include <cuda_runtime.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace stepgate {
namespace {

class OpenCubin {
 public:
  explicit OpenCubin(Cubin cubin)
      : cubin_(std::move(cubin)),
        who_(fmt::format("'{}' of '{}'", cubin_.launch().entry, cubin_.file().path)) {}

  // Throws KernelLibraryError, KernelUnsupported.
  PreparedKernel prepare(const KernelRequest&, const DeviceFacts&);

 private:
  void load(const DeviceFacts&);

  Cubin cubin_;
  std::string who_;
  cudaKernel_t kernel_ = nullptr;
  std::uint32_t most_shared_bytes_ = 0;  // that a launch may ask for
};

void require(cudaError_t status, const std::string& who, std::string_view cannot,
             const DeviceFacts& device) {
  if (status == cudaSuccess) return;
  (void)cudaGetLastError();
  throw KernelLibraryError(
      fmt::format("{} {}: {}", who, cannot, device.in_words(status, device.capability)));
}

dim3 in_cuda(const std::array<std::uint32_t, 3>& three) {
  return {three[0], three[1], three[2]};
}

void OpenCubin::load(const DeviceFacts& device) {
  cudaLibrary_t library = nullptr;
  require(cudaLibraryLoadData(&library, cubin_.file().bytes.data(), nullptr, nullptr, 0, nullptr,
                              nullptr, 0),
          who_, "cannot be loaded", device);
  require(cudaLibraryGetKernel(&kernel_, library, cubin_.launch().entry.c_str()), who_,
          "is not found in what was loaded", device);
}

PreparedKernel OpenCubin::prepare(const KernelRequest& asked, const DeviceFacts& device) {
  CubinCall call = cubin_.call(asked, device);
  if (kernel_ == nullptr) load(device);
  if (call.shared_bytes > most_shared_bytes_) {
    require(cudaFuncSetAttribute(kernel_, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                 static_cast<int>(call.shared_bytes)),
            who_, fmt::format("cannot have {} bytes of shared memory", call.shared_bytes), device);
    most_shared_bytes_ = call.shared_bytes;
  }
  const auto launch = [kernel = kernel_, who = who_, call = std::move(call), device](
                          void* const* operands, CUstream_st* stream) {
    std::vector<std::uint64_t> values;
    for (const CubinCall::Argument& argument : call.arguments) {
      values.push_back(argument.operand == no_operand
                           ? argument.bits
                           : reinterpret_cast<std::uintptr_t>(operands[argument.operand]));
    }
    std::vector<void*> places;
    for (std::uint64_t& value : values) places.push_back(&value);
    require(cudaLaunchKernel(kernel, in_cuda(call.grid), in_cuda(call.block), places.data(),
                             call.shared_bytes, stream),
            who, "failed to launch", device);
  };
  return {.launch = launch};
}

}  // namespace

PrepareKernel loaded_on_gpu(Cubin cubin) {
  const auto open = std::make_shared<OpenCubin>(std::move(cubin));
  return [open](const KernelRequest& asked, const DeviceFacts& device) {
    return open->prepare(asked, device);
  };
}

}  // namespace stepgate
