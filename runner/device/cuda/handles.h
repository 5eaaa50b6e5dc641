// SPDX-License-Identifier: MIT
// CUDA objects with an owner. Their destructors never throw.
#pragma once

#include <cublasLt.h>
#include <cuda_runtime_api.h>

#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>

namespace stepgate {

template <class Handle, auto destroy>
struct Destroy {
  using pointer = Handle;
  void operator()(Handle handle) const noexcept { (void)destroy(handle); }
};

template <class Handle, auto destroy>
using Owned = std::unique_ptr<std::remove_pointer_t<Handle>, Destroy<Handle, destroy>>;

// Frees memory that was pinned by cudaHostRegister after its allocation.
inline void free_registered(void* memory) {
  (void)cudaHostUnregister(memory);
  std::free(memory);
}

using CudaStream = Owned<cudaStream_t, cudaStreamDestroy>;
using CudaEvent = Owned<cudaEvent_t, cudaEventDestroy>;
using Graph = Owned<cudaGraph_t, cudaGraphDestroy>;
using GraphExec = Owned<cudaGraphExec_t, cudaGraphExecDestroy>;
using MemoryPool = Owned<cudaMemPool_t, cudaMemPoolDestroy>;
using BlasHandle = Owned<cublasLtHandle_t, cublasLtDestroy>;
using DeviceMemoryBlock = Owned<void*, cudaFree>;
using ManagedMemory = Owned<void*, cudaFree>;
using PinnedMemory = Owned<void*, cudaFreeHost>;
using RegisteredHostRange = Owned<void*, cudaHostUnregister>;
using RegisteredMemory = Owned<void*, free_registered>;
using HostMemoryBlock = Owned<void*, std::free>;

// Make new objects on the current device. Throw DeviceError.
CudaStream make_stream(unsigned flags = cudaStreamDefault);
CudaEvent make_event(unsigned flags = cudaEventDefault);  // timed unless the flags say otherwise
// Returns the time between two timed events that have happened. The driver's resolution is half a
// microsecond or finer.
std::chrono::nanoseconds time_between(const CudaEvent& first, const CudaEvent& last);
// Returns the version of the library that is loaded: "13.0.2".
std::string cublas_version();
BlasHandle make_blas();
DeviceMemoryBlock make_device_memory(std::int64_t bytes);
PinnedMemory make_pinned_memory(std::int64_t bytes);  // kernels may write to it, too

}  // namespace stepgate
