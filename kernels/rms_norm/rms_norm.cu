// SPDX-License-Identifier: MIT
// The CUDA launchers of rms_norm and residual_rms_norm; the kernels are norm.cuh's. Meaning and
// shapes: rms_norm.h.
#include "kernels/norm.cuh"
#include "kernels/rms_norm/rms_norm.h"

namespace stepgate {

Launch prepare_rms_norm(const KernelShape& shape, DType dtype, const KernelScalars& scalars,
                        const LaunchContext&) {
  const auto epsilon = static_cast<float>(scalars[norm_scalar::epsilon]);
  return with_storage(dtype, [&](auto zero) -> Launch {
    using Number = decltype(zero);
    return [=](void* const* buffers, cudaStream_t stream) {
      const NormCall<Number> call{static_cast<const Number*>(buffers[0]),
                                  nullptr,
                                  static_cast<const Number*>(buffers[1]),
                                  nullptr,
                                  nullptr,
                                  static_cast<Number*>(buffers[2]),
                                  static_cast<float*>(buffers[3]),
                                  shape.rows,
                                  shape.columns,
                                  epsilon};
      launch_norm<NormKind::rms, Residual::none>("rms_norm", call, stream);
    };
  });
}

Launch prepare_residual_rms_norm(const KernelShape& shape, DType dtype,
                                 const KernelScalars& scalars, const LaunchContext&) {
  const auto epsilon = static_cast<float>(scalars[norm_scalar::epsilon]);
  return with_storage(dtype, [&](auto zero) -> Launch {
    using Number = decltype(zero);
    return [=](void* const* buffers, cudaStream_t stream) {
      const NormCall<Number> call{static_cast<const Number*>(buffers[0]),
                                  static_cast<const Number*>(buffers[1]),
                                  static_cast<const Number*>(buffers[2]),
                                  nullptr,
                                  static_cast<Number*>(buffers[3]),
                                  static_cast<Number*>(buffers[4]),
                                  static_cast<float*>(buffers[5]),
                                  shape.rows,
                                  shape.columns,
                                  epsilon};
      launch_norm<NormKind::rms, Residual::added>("residual_rms_norm", call, stream);
    };
  });
}

}  // namespace stepgate
