// SPDX-License-Identifier: MIT
// The CUDA launcher of rms_norm_gradient; the kernels are norm_gradient.cuh's. Meaning and shapes:
// norm.h.
#include "kernels/norm/norm.h"
#include "kernels/norm/norm_gradient.cuh"

namespace stepgate {

Launch prepare_rms_norm_gradient(const KernelShape& shape, DType dtype,
                                 const KernelAttributes& attributes, const LaunchContext& context) {
  return prepare_norm_gradient<NormKind::rms>("rms_norm_gradient", shape, dtype, attributes,
                                              context);
}

}  // namespace stepgate
