// SPDX-License-Identifier: MIT
// CUDA kernels and launchers of the norms; norm.h has their meaning and shapes.
#include "kernels/norm/norm.h"

#include "kernels/norm/norm.cuh"
#include "kernels/norm/norm_gradient.cuh"

namespace stepgate {
Launch kernels::LayerNorm::prepare(const Shape& shape, DType dtype, const Attributes& attributes,
                                   const LaunchContext&) {
  return prepare_norm<NormKind::layer, Residual::none>("layer_norm", shape, dtype, attributes);
}

Launch kernels::ResidualLayerNorm::prepare(const Shape& shape, DType dtype,
                                           const Attributes& attributes, const LaunchContext&) {
  return prepare_norm<NormKind::layer, Residual::plain>("residual_layer_norm", shape, dtype,
                                                        attributes);
}

Launch kernels::ResidualBiasLayerNorm::prepare(const Shape& shape, DType dtype,
                                               const Attributes& attributes, const LaunchContext&) {
  return prepare_norm<NormKind::layer, Residual::biased>("residual_bias_layer_norm", shape, dtype,
                                                         attributes);
}

Launch kernels::LayerNormGradient::prepare(const Shape& shape, DType dtype,
                                           const Attributes& attributes,
                                           const LaunchContext& context) {
  return prepare_norm_gradient<NormKind::layer>("layer_norm_gradient", shape, dtype, attributes,
                                                context);
}

Launch kernels::RmsNorm::prepare(const Shape& shape, DType dtype, const Attributes& attributes,
                                 const LaunchContext&) {
  return prepare_norm<NormKind::rms, Residual::none>("rms_norm", shape, dtype, attributes);
}

Launch kernels::ResidualRmsNorm::prepare(const Shape& shape, DType dtype,
                                         const Attributes& attributes, const LaunchContext&) {
  return prepare_norm<NormKind::rms, Residual::plain>("residual_rms_norm", shape, dtype,
                                                      attributes);
}

Launch kernels::ResidualBiasRmsNorm::prepare(const Shape& shape, DType dtype,
                                             const Attributes& attributes, const LaunchContext&) {
  return prepare_norm<NormKind::rms, Residual::biased>("residual_bias_rms_norm", shape, dtype,
                                                       attributes);
}

Launch kernels::RmsNormGradient::prepare(const Shape& shape, DType dtype,
                                         const Attributes& attributes,
                                         const LaunchContext& context) {
  return prepare_norm_gradient<NormKind::rms>("rms_norm_gradient", shape, dtype, attributes,
                                              context);
}

}  // namespace stepgate
