// SPDX-License-Identifier: MIT
// The CUDA launchers of layer_norm and residual_layer_norm; the kernels are norm.cuh's. Meaning and
// shapes: layer_norm.h.
#include "kernels/layer_norm/layer_norm.h"
#include "kernels/norm.cuh"

namespace stepgate {

Launch prepare_layer_norm(const KernelShape& shape, DType dtype, const KernelScalars& scalars,
                          const LaunchContext&) {
  const auto epsilon = static_cast<float>(scalars[norm_scalar::epsilon]);
  return with_storage(dtype, [&](auto zero) -> Launch {
    using Number = decltype(zero);
    return [=](void* const* buffers, cudaStream_t stream) {
      const NormCall<Number> call{static_cast<const Number*>(buffers[0]),
                                  nullptr,
                                  static_cast<const Number*>(buffers[1]),
                                  static_cast<const Number*>(buffers[2]),
                                  nullptr,
                                  static_cast<Number*>(buffers[3]),
                                  static_cast<float*>(buffers[4]),
                                  shape.rows,
                                  shape.columns,
                                  epsilon};
      launch_norm<NormKind::layer, Residual::none>("layer_norm", call, stream);
    };
  });
}

Launch prepare_residual_layer_norm(const KernelShape& shape, DType dtype,
                                   const KernelScalars& scalars, const LaunchContext&) {
  const auto epsilon = static_cast<float>(scalars[norm_scalar::epsilon]);
  return with_storage(dtype, [&](auto zero) -> Launch {
    using Number = decltype(zero);
    return [=](void* const* buffers, cudaStream_t stream) {
      const NormCall<Number> call{static_cast<const Number*>(buffers[0]),
                                  static_cast<const Number*>(buffers[1]),
                                  static_cast<const Number*>(buffers[2]),
                                  static_cast<const Number*>(buffers[3]),
                                  static_cast<Number*>(buffers[4]),
                                  static_cast<Number*>(buffers[5]),
                                  static_cast<float*>(buffers[6]),
                                  shape.rows,
                                  shape.columns,
                                  epsilon};
      launch_norm<NormKind::layer, Residual::added>("residual_layer_norm", call, stream);
    };
  });
}

}  // namespace stepgate
