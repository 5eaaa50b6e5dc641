// SPDX-License-Identifier: MIT
#include "device/cuda/kept_memory.h"

#include "support/require.h"

namespace stepgate {
namespace {

constexpr std::size_t page_bytes = 4096;

}  // namespace

template <class Owner>
auto KeptMemory::Row<Owner>::following() -> Block& {
  if (next == blocks.size()) blocks.emplace_back();
  return blocks[next++];
}

template <class Owner>
std::int64_t KeptMemory::Row<Owner>::bytes() const {
  std::int64_t sum = 0;
  for (const Block& block : blocks) sum += block.bytes;
  return sum;
}

void KeptMemory::begin() {
  require(!in_use_, "a slot holds one step at a time");
  in_use_ = true;
  device_.next = pinned_.next = pageable_.next = 0;
}

std::int64_t KeptMemory::device_bytes() const {
  return device_.bytes();
}

cudaError_t KeptMemory::take_device(void*& memory, std::int64_t bytes) {
  auto& block = device_.following();
  if (block.bytes < bytes) {
    block = {};
    const cudaError_t status = cudaMalloc(&memory, static_cast<std::size_t>(bytes));
    if (status != cudaSuccess) return status;
    block = {DeviceMemoryBlock(memory), bytes};
  }
  memory = block.memory.get();
  return cudaSuccess;
}

cudaError_t KeptMemory::take_pinned(void*& memory, std::int64_t bytes) {
  auto& block = pinned_.following();
  if (block.bytes < bytes) {
    block = {};
    const cudaError_t status =
        cudaHostAlloc(&memory, static_cast<std::size_t>(bytes), cudaHostAllocDefault);
    if (status != cudaSuccess) return status;
    block = {PinnedMemory(memory), bytes};
  }
  memory = block.memory.get();
  return cudaSuccess;
}

void* KeptMemory::take_pageable(std::int64_t bytes) {
  auto& block = pageable_.following();
  if (block.bytes < bytes) {
    block = {};
    const std::size_t whole_pages =
        (static_cast<std::size_t>(bytes) + page_bytes - 1) / page_bytes * page_bytes;
    void* memory = std::aligned_alloc(page_bytes, whole_pages);
    if (!memory) return nullptr;
    block = {HostMemoryBlock(memory), bytes};
  }
  return block.memory.get();
}

}  // namespace stepgate
