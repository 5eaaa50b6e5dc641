// SPDX-License-Identifier: MIT
#include "device/cuda/handles.h"

#include <fmt/format.h>

#include <cmath>

#include "device/cuda/check.h"

namespace stepgate {

CudaStream make_stream(unsigned flags) {
  cudaStream_t stream = nullptr;
  check(cudaStreamCreateWithFlags(&stream, flags), "create a stream");
  return CudaStream(stream);
}

CudaEvent make_event(unsigned flags) {
  cudaEvent_t event = nullptr;
  check(cudaEventCreateWithFlags(&event, flags), "create an event");
  return CudaEvent(event);
}

std::chrono::nanoseconds time_between(const CudaEvent& first, const CudaEvent& last) {
  float milliseconds = 0;
  check(cudaEventElapsedTime(&milliseconds, first.get(), last.get()),
        "read the time between events");
  return std::chrono::nanoseconds(std::llround(static_cast<double>(milliseconds) * 1e6));
}

std::string cublas_version() {
  const std::size_t version = cublasLtGetVersion();  // as CUBLAS_VERSION has it
  if (version == 0) return "";
  return fmt::format("{}.{}.{}", version / 10'000, version / 100 % 100, version % 100);
}

BlasHandle make_blas() {
  cublasLtHandle_t blas = nullptr;
  check(cublasLtCreate(&blas), "start cuBLASLt");
  return BlasHandle(blas);
}

DeviceMemoryBlock make_device_memory(std::int64_t bytes) {
  void* memory = nullptr;
  check(cudaMalloc(&memory, static_cast<std::size_t>(bytes)), "allocate device memory");
  return DeviceMemoryBlock(memory);
}

PinnedMemory make_pinned_memory(std::int64_t bytes) {
  void* memory = nullptr;
  check(cudaHostAlloc(&memory, static_cast<std::size_t>(bytes), cudaHostAllocDefault),
        "allocate pinned memory");
  return PinnedMemory(memory);
}

}  // namespace stepgate
