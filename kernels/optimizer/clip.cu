// SPDX-License-Identifier: MIT
// The CUDA side of clip. Meaning and shapes: optimizer.h.
#include "kernels/launch.cuh"
#include "kernels/optimizer/block_sum.cuh"
#include "kernels/optimizer/optimizer.h"
#include "kernels/update_control.h"

namespace stepgate {
namespace {

constexpr int block_threads = 512;

struct ClipRates {
  float max_norm;
  float growth_interval;
  float growth;
  float backoff;
};

__device__ void skip(float* control, const ClipRates& rates) {
  control[update_control::factor] = 0.0f;
  control[update_control::good_updates] = 0.0f;
  if (rates.growth_interval != 0.0f) control[update_control::loss_scale] *= rates.backoff;
}

__device__ void count_good_update(float* control, const ClipRates& rates) {
  control[update_control::updates] += 1.0f;
  const float good = control[update_control::good_updates] + 1.0f;
  const bool grows = rates.growth_interval != 0.0f && good >= rates.growth_interval;
  control[update_control::good_updates] = grows ? 0.0f : good;
  if (grows) control[update_control::loss_scale] *= rates.growth;
}

// One block: a few thousand sums at most.
__global__ void __launch_bounds__(block_threads)
    clip(const float* partials, float* control, std::int64_t count, ClipRates rates) {
  float own = 0.0f;
#pragma unroll 4
  for (std::int64_t i = threadIdx.x; i < count; i += block_threads) own += partials[i];
  const float sum = block_sum<block_threads>(own);
  if (threadIdx.x != 0) return;
  const float scale = control[update_control::loss_scale];
  const float norm = sqrtf(sum) / scale;
  control[update_control::norm] = norm;
  if (!isfinite(norm)) return skip(control, rates);
  const float limit = rates.max_norm / (norm + static_cast<float>(clip_epsilon));
  const float clipped = rates.max_norm == 0.0f ? 1.0f : fminf(1.0f, limit);
  control[update_control::factor] = clipped / scale;
  count_good_update(control, rates);
}

}  // namespace

Launch prepare_clip(const KernelShape& shape, DType, const KernelAttributes& attributes,
                    const LaunchContext&) {
  const ClipRates rates{
      .max_norm = static_cast<float>(attributes.as<kernels::Clip>().max_norm),
      .growth_interval = static_cast<float>(attributes.as<kernels::Clip>().growth_interval),
      .growth = static_cast<float>(attributes.as<kernels::Clip>().growth),
      .backoff = static_cast<float>(attributes.as<kernels::Clip>().backoff)};
  return [count = shape.depth, rates](void* const* buffers, cudaStream_t stream) {
    clip<<<1, block_threads, 0, stream>>>(static_cast<const float*>(buffers[0]),
                                          static_cast<float*>(buffers[1]), count, rates);
    check_launch("clip");
  };
}

}  // namespace stepgate
