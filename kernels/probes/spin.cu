// SPDX-License-Identifier: MIT
// The CUDA side of spin. Meaning and shapes: probes.h.
#include "kernels/launch.cuh"
#include "kernels/probes/probes.h"

namespace stepgate {
namespace {

__device__ std::uint64_t device_clock_nanoseconds() {
  std::uint64_t nanoseconds;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(nanoseconds));
  return nanoseconds;
}

// One warp busy-waits. The clock is the wall clock of the device, so the time does not depend on
// the multiprocessors' frequency.
__global__ void spin(std::uint32_t* word, std::uint64_t nanoseconds) {
  const std::uint64_t start = device_clock_nanoseconds();
  while (device_clock_nanoseconds() - start < nanoseconds) {
  }
  if (threadIdx.x == 0) *word += 1;
}

}  // namespace

Launch prepare_spin(const KernelShape&, DType, const KernelAttributes& attributes,
                    const LaunchContext&) {
  const auto nanoseconds =
      static_cast<std::uint64_t>(attributes.as<kernels::Spin>().microseconds * 1e3);
  return [nanoseconds](void* const* buffers, cudaStream_t stream) {
    spin<<<1, 32, 0, stream>>>(static_cast<std::uint32_t*>(buffers[0]), nanoseconds);
    check_launch("spin");
  };
}

}  // namespace stepgate
