// SPDX-License-Identifier: MIT
// The CUDA launchers of rms_norm with and without a residual; the kernels are norm.cuh's. Meaning
// and shapes: norm.h.
#include "kernels/norm/norm.cuh"
#include "kernels/norm/norm.h"

namespace stepgate {

Launch prepare_rms_norm(const KernelShape& shape, DType dtype, const KernelAttributes& attributes,
                        const LaunchContext&) {
  return prepare_norm<NormKind::rms, Residual::none>("rms_norm", shape, dtype, attributes);
}

Launch prepare_residual_rms_norm(const KernelShape& shape, DType dtype,
                                 const KernelAttributes& attributes, const LaunchContext&) {
  return prepare_norm<NormKind::rms, Residual::plain>("residual_rms_norm", shape, dtype,
                                                      attributes);
}

Launch prepare_residual_bias_rms_norm(const KernelShape& shape, DType dtype,
                                      const KernelAttributes& attributes, const LaunchContext&) {
  return prepare_norm<NormKind::rms, Residual::biased>("residual_bias_rms_norm", shape, dtype,
                                                       attributes);
}

}  // namespace stepgate
