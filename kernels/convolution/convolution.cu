// SPDX-License-Identifier: MIT
// The launchers of convolutions, all of which are cuDNN's.
#include <algorithm>
#include <optional>
#include <stdexcept>
#include <string>

#include "kernels/convolution/cudnn/cudnn_convolution.h"

namespace stepgate {
namespace {

Launch by_cudnn(const ConvolutionRequest& request, const LaunchContext& context) {
  std::string reason(context.cudnn_unavailable_reason);
  std::optional<Launch> launch;
  if (context.dnn != nullptr)
    launch = cudnn_convolution(*context.dnn, request, context.workspace, context.workspace_bytes,
                               &reason);
  if (!launch)
    throw std::runtime_error("cuDNN has no " + std::string(request.kernel) + " of " +
                             text_of(KernelShape(request.shape)) + ": " + reason);
  if (context.choices != nullptr) {
    const KernelChoice choice{.kernel = std::string(request.kernel),
                              .library = "cuDNN " + version_of(*context.dnn),
                              .reason = {}};
    if (std::ranges::find(*context.choices, choice) == context.choices->end())
      context.choices->push_back(choice);
  }
  return *launch;
}

}  // namespace

Launch kernels::Convolution::prepare(const Shape& shape, DType dtype, const Attributes&,
                                     const LaunchContext& context) {
  return by_cudnn({.kernel = name, .shape = shape, .dtype = dtype}, context);
}

Launch kernels::ConvolutionDataGradient::prepare(const Shape& shape, DType dtype, const Attributes&,
                                                 const LaunchContext& context) {
  return by_cudnn({.kernel = name, .shape = shape, .dtype = dtype}, context);
}

Launch kernels::ConvolutionWeightGradient::prepare(const Shape& shape, DType dtype,
                                                   const Attributes& attributes,
                                                   const LaunchContext& context) {
  return by_cudnn(
      {.kernel = name, .shape = shape, .dtype = dtype, .accumulate = attributes.accumulate},
      context);
}

}  // namespace stepgate
