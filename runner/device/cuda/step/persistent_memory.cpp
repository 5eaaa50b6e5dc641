// SPDX-License-Identifier: MIT
#include "device/cuda/step/persistent_memory.h"

#include <utility>

#include "base/require.h"

namespace stepgate {
namespace {

constexpr std::size_t page_bytes = 4096;

DeviceMemoryBlock device_block(std::int64_t bytes, cudaError_t& status) {
  void* memory = nullptr;
  status = cudaMalloc(&memory, static_cast<std::size_t>(bytes));
  return DeviceMemoryBlock(status == cudaSuccess ? memory : nullptr);
}

PinnedMemory pinned_block(std::int64_t bytes, cudaError_t& status) {
  void* memory = nullptr;
  status = cudaHostAlloc(&memory, static_cast<std::size_t>(bytes), cudaHostAllocDefault);
  return PinnedMemory(status == cudaSuccess ? memory : nullptr);
}

// The block consists of whole pages.
HostMemoryBlock pageable_block(std::int64_t bytes, cudaError_t& status) {
  const std::size_t whole_pages =
      (static_cast<std::size_t>(bytes) + page_bytes - 1) / page_bytes * page_bytes;
  HostMemoryBlock memory(std::aligned_alloc(page_bytes, whole_pages));
  status = memory ? cudaSuccess : cudaErrorMemoryAllocation;
  return memory;
}

RegisteredMemory registered_block(std::int64_t bytes, cudaError_t& status) {
  HostMemoryBlock memory = pageable_block(bytes, status);
  if (!memory) return {};
  status = cudaHostRegister(memory.get(), static_cast<std::size_t>(bytes), cudaHostRegisterDefault);
  return RegisteredMemory(status == cudaSuccess ? memory.release() : nullptr);
}

}  // namespace

void PersistentMemory::begin(KeptSizes wanted, std::int64_t other_device_bytes,
                             std::int64_t free_device_bytes) {
  require(!in_use_, "a slot holds one step at a time");
  in_use_ = true;
  auto& [device, pinned, registered, pageable] = wanted;
  const std::int64_t before = device_.bytes();
  device_.begin(device);
  const std::int64_t given_up = before - device_.bytes();
  if (device_.missing_bytes() + other_device_bytes > free_device_bytes + given_up) {
    device_.give_up_all();
    device_.begin(std::move(device));
  }
  pinned_.begin(std::move(pinned));
  registered_.begin(std::move(registered));
  pageable_.begin(std::move(pageable));
}

cudaError_t PersistentMemory::take(KeptKind kind, void*& memory, std::int64_t bytes) {
  cudaError_t status = cudaSuccess;
  const auto by = [&](auto make) {
    return [make, &status](std::int64_t allocated) { return make(allocated, status); };
  };
  switch (kind) {
    case KeptKind::device:
      memory = device_.take(bytes, by(device_block));
      break;
    case KeptKind::pinned:
      memory = pinned_.take(bytes, by(pinned_block));
      break;
    case KeptKind::registered:
      memory = registered_.take(bytes, by(registered_block));
      break;
    case KeptKind::pageable:
      memory = pageable_.take(bytes, by(pageable_block));
      break;
  }
  return status;
}

const void*& PersistentMemory::mark_of(KeptKind kind, const void* memory) {
  switch (kind) {
    case KeptKind::device:
      return device_.mark_of(memory);
    case KeptKind::pinned:
      return pinned_.mark_of(memory);
    case KeptKind::registered:
      return registered_.mark_of(memory);
    case KeptKind::pageable:
      return pageable_.mark_of(memory);
  }
  require(false, "memory of every kind is kept");
  return pageable_.mark_of(memory);
}

void PersistentMemory::give_up_device_memory() {
  if (in_use_) {
    device_.give_up_free();
  } else {
    device_.give_up_all();
  }
}

}  // namespace stepgate
