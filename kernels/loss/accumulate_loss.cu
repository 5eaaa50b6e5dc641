// SPDX-License-Identifier: MIT
// The CUDA side of accumulate_loss. Meaning and shapes: loss.h.
#include "kernels/launch.cuh"
#include "kernels/loss/loss.h"

namespace stepgate {
namespace {

__global__ void accumulate_loss(const float* loss, float* sum) {
  *sum += *loss;
}

}  // namespace

Launch prepare_accumulate_loss(const KernelShape&, DType, const KernelAttributes&,
                               const LaunchContext&) {
  return [](void* const* buffers, cudaStream_t stream) {
    accumulate_loss<<<1, 1, 0, stream>>>(static_cast<const float*>(buffers[0]),
                                         static_cast<float*>(buffers[1]));
    check_launch("accumulate_loss");
  };
}

}  // namespace stepgate
