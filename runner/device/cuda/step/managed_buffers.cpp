// SPDX-License-Identifier: MIT
#include "device/cuda/step/managed_buffers.h"

#include <fmt/format.h>

#include "device/cuda/check.h"
#include "device/cuda/check_allocation.h"
#include "device/device.h"
#include "plan/analyse/access.h"
#include "support/require.h"
#include "support/text/units.h"

namespace stepgate {
namespace {

// More managed memory than there is room for can hang a GPU, and not this process alone.
void require_modest(const StepPlan& plan) {
  constexpr double largest_share = 0.25;
  double needed = 0;
  for (const Buffer& buffer : plan.buffers) {
    if (buffer.memory == MemoryKind::managed)
      needed += static_cast<double>(buffer.bytes) * static_cast<double>(buffer.slots);
  }
  std::size_t free_bytes = 0;
  std::size_t total_bytes = 0;
  check(cudaMemGetInfo(&free_bytes, &total_bytes), "ask for the free memory");
  if (needed > largest_share * static_cast<double>(free_bytes)) {
    throw DeviceError(fmt::format(
        "variant '{}' asks for {:.0f} MiB of managed memory, more than a quarter of the {:.0f} MiB "
        "that are free; lower 'batch.size' or 'batch.sample_bytes'",
        plan.variant, needed / mebibyte, static_cast<double>(free_bytes) / mebibyte));
  }
  int device = 0;
  int concurrent = 0;
  check(cudaGetDevice(&device), "ask for the current device");
  check(cudaDeviceGetAttribute(&concurrent, cudaDevAttrConcurrentManagedAccess, device),
        "ask for a device attribute");
  if (concurrent == 0) {
    throw DeviceError(fmt::format(
        "variant '{}' writes managed memory while the GPU works, which this GPU does not allow; "
        "set 'transfer.host' to pinned",
        plan.variant));
  }
}

cudaMemoryAdvise in_words_of_cuda(ManagedAdvice advice) {
  switch (advice) {
    case ManagedAdvice::read_mostly:
      return cudaMemAdviseSetReadMostly;
    case ManagedAdvice::preferred:
      return cudaMemAdviseSetPreferredLocation;
    case ManagedAdvice::accessed_by:
      return cudaMemAdviseSetAccessedBy;
    case ManagedAdvice::none:
      break;
  }
  require(false, "there is something to advise");
  return cudaMemAdviseUnsetReadMostly;
}

void advise(const Buffer& buffer, const void* slot) {
  if (buffer.advice == ManagedAdvice::none) return;
  int device = 0;
  check(cudaGetDevice(&device), "ask for the current device");
  const cudaMemLocation location{.type = cudaMemLocationTypeDevice, .id = device};
  check(cudaMemAdvise(slot, static_cast<std::size_t>(buffer.bytes), in_words_of_cuda(buffer.advice),
                      location),
        fmt::format("advise the driver of '{}'", buffer.name));
}

}  // namespace

ManagedBuffers::ManagedBuffers(const StepPlan& plan) {
  if (uses_managed_memory(plan)) require_modest(plan);
}

void* ManagedBuffers::take(const Buffer& buffer) {
  void* memory = nullptr;
  check_allocation(cudaMallocManaged(&memory, static_cast<std::size_t>(buffer.bytes)), buffer);
  owned_.emplace_back(memory);
  bytes_ += buffer.bytes;
  advise(buffer, memory);
  return memory;
}

}  // namespace stepgate
