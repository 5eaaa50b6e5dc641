// SPDX-License-Identifier: MIT
#include "device/cuda/step/step_pool.h"

#include <fmt/format.h>

#include <limits>

#include "device/cuda/check.h"
#include "device/device.h"
#include "plan/allocate/pool_refusal.h"
#include "support/require.h"

namespace stepgate {
namespace {

MemoryPool make_pool(const StepPlan& plan) {
  int device = 0;
  check(cudaGetDevice(&device), "ask for the current device");
  cudaMemPoolProps properties{};
  properties.allocType = cudaMemAllocationTypePinned;
  properties.location = {cudaMemLocationTypeDevice, device};
  if (plan.pool_cap_bytes) {
    require(*plan.pool_cap_bytes > 0,
            "a pool that may take nothing is not made: 0 would be no cap");
    properties.maxSize = static_cast<std::size_t>(*plan.pool_cap_bytes);
  }
  cudaMemPool_t pool = nullptr;
  check(cudaMemPoolCreate(&pool, &properties), "create the step's memory pool");
  MemoryPool owned(pool);
  std::uint64_t keep = plan.keep_bytes ? static_cast<std::uint64_t>(*plan.keep_bytes)
                                       : std::numeric_limits<std::uint64_t>::max();
  check(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &keep),
        "set what the memory pool keeps");
  return owned;
}

}  // namespace

StepPool::StepPool(const StepPlan& plan) : plan_(plan), pool_(make_pool(plan)) {}

void* StepPool::take(const Buffer& asked, std::int64_t step, cudaStream_t stream) const {
  void* memory = nullptr;
  const cudaError_t status =
      cudaMallocFromPoolAsync(&memory, static_cast<std::size_t>(asked.bytes), pool_.get(), stream);
  if (status == cudaErrorMemoryAllocation) refuse(asked, step);
  check(status, "allocate from the memory pool");
  return memory;
}

std::int64_t StepPool::bytes(cudaMemPoolAttr attribute) const {
  std::uint64_t bytes = 0;
  check(cudaMemPoolGetAttribute(pool_.get(), attribute, &bytes),
        "ask how much the memory pool has");
  return static_cast<std::int64_t>(bytes);
}

void StepPool::refuse(const Buffer& asked, std::int64_t step) const {
  (void)cudaGetLastError();  // the next launch must not see it
  std::size_t free_bytes = 0;
  std::size_t total_bytes = 0;
  check(cudaMemGetInfo(&free_bytes, &total_bytes), "ask for the free memory");
  const PoolRefusal refusal{.requested_bytes = asked.bytes,
                            .live_bytes = bytes(cudaMemPoolAttrUsedMemCurrent),
                            .reserved_bytes = bytes(cudaMemPoolAttrReservedMemCurrent),
                            .device_free_bytes = static_cast<std::int64_t>(free_bytes),
                            .cap_bytes = plan_.pool_cap_bytes};
  throw DeviceError(fmt::format("variant '{}', step {}: {}; {}", plan_.variant, step,
                                in_words(refusal, asked.name), way_out(refusal)));
}

}  // namespace stepgate
