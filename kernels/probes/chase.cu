// SPDX-License-Identifier: MIT
// The CUDA side of chase. Meaning and shapes: probes.h.
#include "kernels/launch.cuh"
#include "kernels/probes/probes.h"

namespace stepgate {
namespace {

// One thread, so that one load is on its way at a time. Loads are cached in every level; the first
// level is empty when a launch begins, so a small footprint misses it once a line and launch. A
// large footprint also misses the TLB, which is part of what a load from memory costs here.
__global__ void chase(const std::uint32_t* chain, std::uint32_t* position, float* fraction,
                      std::int64_t accesses, float line_share) {
  std::uint32_t line = *position;
  for (std::int64_t access = 0; access < accesses; ++access) {
    line = __ldca(chain + line * chase_line_words);
  }
  *position = line;
  *fraction = static_cast<float>(line) * line_share;
}

}  // namespace

Launch prepare_chase(const KernelShape& shape, DType, const KernelAttributes& attributes,
                     const LaunchContext&) {
  const std::int64_t accesses = attributes.as<kernels::Chase>().accesses;
  const float line_share = 1.0f / static_cast<float>(shape.columns);  // exact: a power of two
  return [accesses, line_share](void* const* buffers, cudaStream_t stream) {
    chase<<<1, 1, 0, stream>>>(static_cast<const std::uint32_t*>(buffers[0]),
                               static_cast<std::uint32_t*>(buffers[1]),
                               static_cast<float*>(buffers[2]), accesses, line_share);
    check_launch("chase");
  };
}

}  // namespace stepgate
