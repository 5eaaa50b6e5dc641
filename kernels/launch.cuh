// SPDX-License-Identifier: MIT
// Parts that every launcher needs: packs of numbers that move in one access, the storage type as a
// compile-time type, launch errors, and the grid of an element-wise kernel. It contains no kernel
// of a step.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>

#include "kernels/kernel.h"

namespace stepgate {

constexpr int access_bytes = 16;  // the widest load and store of one thread

// A pack of `count` neighbouring numbers; it moves in one access if it has at most 16 bytes.
template <class Number, int count>
struct alignas(sizeof(Number) * count < access_bytes ? sizeof(Number) * count : access_bytes) Pack {
  Number values[count];
};

template <int count, class Number>
__device__ __forceinline__ Pack<Number, count> load(const Number* from, std::int64_t index) {
  return *reinterpret_cast<const Pack<Number, count>*>(from + index);
}

template <int count, class Number>
__device__ __forceinline__ void store(Number* to, std::int64_t index,
                                      const Pack<Number, count>& pack) {
  *reinterpret_cast<Pack<Number, count>*>(to + index) = pack;
}

__device__ __forceinline__ float to_float(float value) {
  return value;
}
__device__ __forceinline__ float to_float(__nv_bfloat16 value) {
  return __bfloat162float(value);
}

__device__ __forceinline__ float to_float(__half value) {
  return __half2float(value);
}

template <class Number>
__device__ __forceinline__ Number from_float(float value) {
  if constexpr (std::is_same_v<Number, __nv_bfloat16>) {
    return __float2bfloat16_rn(value);
  } else if constexpr (std::is_same_v<Number, __half>) {
    return __float2half_rn(value);
  } else {
    return value;
  }
}

// Calls `with` with a value of the storage type, whose type it can use: with_storage(dtype,
// [&](auto zero) { using Number = decltype(zero); ... }).
template <class Function>
auto with_storage(DType dtype, Function with) {
  if (dtype == DType::bf16) return with(__nv_bfloat16{});
  return dtype == DType::fp16 ? with(__half{}) : with(float{});
}

// Bytes of shared memory that a block can use: 227 KiB on an H200, 99 KiB on an L4.
inline std::int64_t most_shared_bytes(const LaunchContext& context) {
  if (context.shared_bytes > 0) return context.shared_bytes;
  int device = 0, most = 0;
  if (cudaGetDevice(&device) != cudaSuccess ||
      cudaDeviceGetAttribute(&most, cudaDevAttrMaxSharedMemoryPerBlockOptin, device) !=
          cudaSuccess) {
    throw std::runtime_error("ask the device for its shared memory");
  }
  return most;
}

// Bytes of dynamic shared memory that launches may request in addition to the kernel's static
// shared memory.
template <class Function>
std::int64_t most_dynamic_shared_bytes(Function* function, const LaunchContext& context) {
  cudaFuncAttributes attributes{};
  const cudaError_t status = cudaFuncGetAttributes(&attributes, function);
  if (status == cudaSuccess)
    return most_shared_bytes(context) - static_cast<std::int64_t>(attributes.sharedSizeBytes);
  throw std::runtime_error(std::string("ask for a kernel's attributes: ") +
                           cudaGetErrorString(status));
}

enum class Carveout { as_it_is, most_shared };  // of the unified L1 cache and shared memory

// Lets all launches of the kernel request so many bytes of dynamic shared memory; returns false
// where a block cannot have them.
template <class Function>
bool take_shared_memory(std::string_view kernel, Function* function, std::int64_t bytes,
                        Carveout carveout, const LaunchContext& context) {
  if (bytes > most_dynamic_shared_bytes(function, context)) return false;
  cudaError_t status = cudaFuncSetAttribute(function, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                            static_cast<int>(bytes));
  if (status == cudaSuccess && carveout == Carveout::most_shared) {
    status = cudaFuncSetAttribute(function, cudaFuncAttributePreferredSharedMemoryCarveout,
                                  cudaSharedmemCarveoutMaxShared);
  }
  if (status == cudaSuccess) return true;
  throw std::runtime_error(std::string(kernel) + ": take " + std::to_string(bytes) +
                           " bytes of shared memory: " + cudaGetErrorString(status));
}

// Throws std::runtime_error with the kernel's name when its launch was refused.
inline void check_launch(std::string_view kernel) {
  const cudaError_t status = cudaGetLastError();
  if (status == cudaSuccess) return;
  throw std::runtime_error("launch of " + std::string(kernel) + ": " + cudaGetErrorString(status));
}

template <class... Pointer>
bool aligned_to_access(const Pointer*... pointers) {
  return ((reinterpret_cast<std::uintptr_t>(pointers) % access_bytes == 0) && ...);
}

constexpr std::int64_t ceiling_quotient(std::int64_t value, std::int64_t divisor) {
  return (value + divisor - 1) / divisor;
}

constexpr int elementwise_threads = 256;

// Each of the first `packs` threads processes a pack, each of the next `rest` threads one element.
template <int count, class Element>
__global__ void __launch_bounds__(elementwise_threads)
    elementwise(std::int64_t packs, std::int64_t rest, Element element) {
  const std::int64_t thread =
      static_cast<std::int64_t>(blockIdx.x) * elementwise_threads + threadIdx.x;
  if (thread < packs) {
    element.template apply<count>(thread * count);
  } else if (thread < packs + rest) {
    element.template apply<1>(packs * count + (thread - packs));
  }
}

// Calls element.apply<n>(i), which processes elements [i, i + n), for all elements: in packs of
// `count` where every operand is aligned, else one by one. One thread per pack suffices: 2^31 - 1
// blocks cover 8 TB of 16-byte packs.
template <int count, class Element>
void launch_elementwise(std::string_view kernel, std::int64_t elements, const Element& element,
                        bool aligned, cudaStream_t stream) {
  if (elements == 0) return;
  const std::int64_t packs = aligned ? elements / count : elements;
  const std::int64_t rest = aligned ? elements % count : 0;
  const auto blocks = static_cast<unsigned>(ceiling_quotient(packs + rest, elementwise_threads));
  if (aligned) {
    elementwise<count><<<blocks, elementwise_threads, 0, stream>>>(packs, rest, element);
  } else {
    elementwise<1><<<blocks, elementwise_threads, 0, stream>>>(packs, rest, element);
  }
  check_launch(kernel);
}

}  // namespace stepgate
