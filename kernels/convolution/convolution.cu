// SPDX-License-Identifier: MIT
// The launchers of convolutions. cuDNN computes all of them except the first of a ResNet in 16
// bits.
#include <algorithm>
#include <optional>
#include <stdexcept>
#include <string>

#include "kernels/convolution/cudnn/cudnn_convolution.h"
#include "kernels/convolution/image_layer.cuh"
#include "kernels/gemm/measured_operands.h"
#include "kernels/launch.cuh"

namespace stepgate {
namespace {

// Where algorithms of GEMMs are measured, so are engines of convolutions.
ChooseLaunch chooser_of(const ConvolutionRequest& request, const LaunchContext& context) {
  if (context.gemm_autotuner == nullptr) return nullptr;
  return [request](const std::vector<Launch>& launches) {
    const std::vector<std::int64_t> elements = operand_elements(request);
    const MeasuredOperands operands(request.kernel, {elements.begin(), elements.end()},
                                    request.dtype);
    const auto enqueue = [&](std::size_t index) { launches[index](operands.pointers(), nullptr); };
    return choose_by_time(operands, launches.size(), enqueue).index;
  };
}

Launch by_cudnn(const ConvolutionRequest& request, const LaunchContext& context) {
  std::string reason(context.cudnn_unavailable_reason);
  std::optional<Launch> launch;
  if (context.dnn != nullptr)
    launch = cudnn_convolution(*context.dnn, request, context.workspace, context.workspace_bytes,
                               &reason, chooser_of(request, context));
  if (!launch)
    throw std::runtime_error("cuDNN has no " + std::string(request.kernel) + " of " +
                             text_of(KernelShape(request.shape)) + ": " + reason +
                             "; choose another dtype or batch size, or name another cuDNN with "
                             "STEPGATE_CUDNN");
  record_choice(context, {.kernel = std::string(request.kernel),
                          .library = "cuDNN " + version_of(*context.dnn),
                          .reason = {}});
  return *launch;
}

// Partial sums of weight gradients, and blocks that share the strips. Twice the multiprocessors of
// an H200, on any device, so that the sums do not depend on it.
constexpr int image_blocks = 264;

bool is_image_layer(const ConvolutionShape& s, DType dtype) {
  constexpr std::int64_t most_pixels = 1 << 20;  // so that offsets in an image fit an int
  return (dtype == DType::bf16 || dtype == DType::fp16) && s.channels == image_channels &&
         s.window == image_window && s.stride == image_stride && s.outputs % image_outputs == 0 &&
         s.width % 8 == 0 && image_channels * s.padding < image_margin &&
         s.height * s.width <= most_pixels && s.output_pixels() <= most_pixels * image_blocks;
}

ImageStrips strips_of(const ConvolutionShape& shape) {
  const auto whole = [](std::int64_t size) { return static_cast<int>(size); };
  ImageStrips s{.height = whole(shape.height),
                .width = whole(shape.width),
                .padding = whole(shape.padding),
                .output_height = whole(shape.output_height()),
                .output_width = whole(shape.output_width()),
                .outputs = whole(shape.outputs)};
  constexpr int pixels = 2 * pixels_at_once * image_warps;
  s.rows = std::min(whole(ceiling_quotient(pixels, s.output_width)), s.output_height);
  s.strips = whole(ceiling_quotient(s.output_height, s.rows));
  s.count = s.strips * whole(shape.images);
  const int windows =
      s.first_window() + (s.output_width - 1) * image_stride * image_channels + 8 * row_octets;
  const int row = image_margin + s.width * image_channels;
  s.pitch = whole(ceiling_quotient(std::max(windows, row), 8)) * 8;
  return s;
}

dim3 image_grid(const ImageStrips& s) {
  return dim3(static_cast<unsigned>(std::min(s.count, image_blocks)),
              static_cast<unsigned>(s.outputs / image_outputs));
}

// nullopt where the kernel of the project's own does not serve.
template <class Number>
std::optional<Launch> convolution_of_images(const ConvolutionShape& shape,
                                            const LaunchContext& context) {
  const ImageStrips s = strips_of(shape);
  const int bytes = image_weight_bytes + s.input_rows() * s.row_bytes();
  auto* const function = convolve_images<Number>;
  if (!take_shared_memory("convolution", function, bytes, Carveout::as_it_is, context))
    return std::nullopt;
  return [=](void* const* buffers, cudaStream_t stream) {
    function<<<image_grid(s), image_threads, bytes, stream>>>(
        s, static_cast<const Number*>(buffers[0]), static_cast<const Number*>(buffers[1]),
        static_cast<Number*>(buffers[2]));
    check_launch("convolution");
  };
}

// As above; the workspace holds the partial sums.
template <class Number>
std::optional<Launch> weight_gradient_of_images(const ConvolutionShape& shape, bool accumulate,
                                                const LaunchContext& context) {
  const ImageStrips s = strips_of(shape);
  const dim3 grid = image_grid(s);
  const int pixels = pixels_of_tile(s), weights = s.outputs * window_taps;
  const int bytes = PixelTile::bytes(pixels) + pixels * 4 + s.input_rows() * s.row_bytes();
  auto* const function = sum_image_weight_gradients<Number>;
  if (context.workspace_bytes < std::int64_t{4} * grid.x * weights ||
      !take_shared_memory("convolution_weight_gradient", function, bytes, Carveout::as_it_is,
                          context))
    return std::nullopt;
  return [=, partials = static_cast<float*>(context.workspace)](void* const* buffers,
                                                                cudaStream_t stream) {
    function<<<grid, image_threads, bytes, stream>>>(
        s, pixels, static_cast<const Number*>(buffers[0]), static_cast<const Number*>(buffers[1]),
        partials);
    check_launch("convolution_weight_gradient");
    const auto blocks = static_cast<unsigned>(ceiling_quotient(weights, sum_columns));
    add_weight_gradients<<<blocks, dim3(sum_columns, sum_lines), 0, stream>>>(
        partials, static_cast<int>(grid.x), weights, accumulate, static_cast<Number*>(buffers[2]));
    check_launch("convolution_weight_gradient");
  };
}

// Calls `with` with the storage type of an image layer; nullopt for other shapes.
template <class Function>
std::optional<Launch> if_image_layer(std::string_view kernel, const ConvolutionShape& shape,
                                     DType dtype, const LaunchContext& context, Function with) {
  if (!is_image_layer(shape, dtype)) return std::nullopt;
  std::optional<Launch> launch = dtype == DType::bf16 ? with(__nv_bfloat16{}) : with(__half{});
  if (launch)
    record_choice(context, {.kernel = std::string(kernel),
                            .library = {},
                            .reason = "where images have three channels"});
  return launch;
}

}  // namespace

Launch kernels::Convolution::prepare(const Shape& shape, DType dtype, const Attributes&,
                                     const LaunchContext& context) {
  const auto own = if_image_layer(name, shape, dtype, context, [&](auto zero) {
    return convolution_of_images<decltype(zero)>(shape, context);
  });
  if (own) return *own;
  return by_cudnn({.kernel = name, .shape = shape, .dtype = dtype}, context);
}

Launch kernels::ConvolutionDataGradient::prepare(const Shape& shape, DType dtype, const Attributes&,
                                                 const LaunchContext& context) {
  return by_cudnn({.kernel = name, .shape = shape, .dtype = dtype}, context);
}

Launch kernels::ConvolutionWeightGradient::prepare(const Shape& shape, DType dtype,
                                                   const Attributes& attributes,
                                                   const LaunchContext& context) {
  const auto own = if_image_layer(name, shape, dtype, context, [&](auto zero) {
    return weight_gradient_of_images<decltype(zero)>(shape, attributes.accumulate, context);
  });
  if (own) return *own;
  return by_cudnn(
      {.kernel = name, .shape = shape, .dtype = dtype, .accumulate = attributes.accumulate},
      context);
}

}  // namespace stepgate
