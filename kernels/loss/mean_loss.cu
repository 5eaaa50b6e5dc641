// SPDX-License-Identifier: MIT
// The CUDA side of mean_loss. Meaning and shapes: loss.h.
#include "kernels/launch.cuh"
#include "kernels/loss/loss.h"

namespace stepgate {
namespace {

__global__ void mean_loss(float* sum, float* mean, float count) {
  *mean = *sum / count;
  *sum = 0.0f;
}

}  // namespace

Launch prepare_mean_loss(const KernelShape&, DType, const KernelAttributes& attributes,
                         const LaunchContext&) {
  const auto count = static_cast<float>(attributes.as<kernels::MeanLoss>().count);
  return [count](void* const* buffers, cudaStream_t stream) {
    mean_loss<<<1, 1, 0, stream>>>(static_cast<float*>(buffers[0]), static_cast<float*>(buffers[1]),
                                   count);
    check_launch("mean_loss");
  };
}

}  // namespace stepgate
