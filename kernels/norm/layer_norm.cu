// SPDX-License-Identifier: MIT
// The CUDA launchers of layer_norm with and without a residual; the kernels are norm.cuh's. Meaning
// and shapes: norm.h.
#include "kernels/norm/norm.cuh"
#include "kernels/norm/norm.h"

namespace stepgate {

Launch prepare_layer_norm(const KernelShape& shape, DType dtype, const KernelAttributes& attributes,
                          const LaunchContext&) {
  return prepare_norm<NormKind::layer, Residual::none>("layer_norm", shape, dtype, attributes);
}

Launch prepare_residual_layer_norm(const KernelShape& shape, DType dtype,
                                   const KernelAttributes& attributes, const LaunchContext&) {
  return prepare_norm<NormKind::layer, Residual::plain>("residual_layer_norm", shape, dtype,
                                                        attributes);
}

Launch prepare_residual_bias_layer_norm(const KernelShape& shape, DType dtype,
                                        const KernelAttributes& attributes, const LaunchContext&) {
  return prepare_norm<NormKind::layer, Residual::biased>("residual_bias_layer_norm", shape, dtype,
                                                         attributes);
}

}  // namespace stepgate
