// SPDX-License-Identifier: MIT
// Two-dimensional convolutions of images whose channels lie side by side (NHWC), and their
// gradients, which cuDNN computes. Launchers exist only in CUDA builds; they throw
// std::runtime_error where cuDNN is missing or has no plan within the workspace.
#pragma once

#include "kernels/kernel.h"

namespace stepgate {

// Square windows over images with zeros around them. Both sides of the image have the same stride
// and padding.
template <class Size>
struct ConvolutionSizes {
  static constexpr std::string_view names =
      "images height width channels outputs window stride padding";
  Size images = 1;
  Size height = 1;  // of the input
  Size width = 1;
  Size channels = 1;  // of the input
  Size outputs = 1;   // channels of the output
  Size window = 1;    // height and width
  Size stride = 1;
  Size padding = 0;  // zeros on each side

  constexpr Size output_height() const { return (height + 2 * padding - window) / stride + 1; }
  constexpr Size output_width() const { return (width + 2 * padding - window) / stride + 1; }
  constexpr Size input_pixels() const { return images * height * width; }
  constexpr Size output_pixels() const { return images * output_height() * output_width(); }
  // Numbers that one output channel is made of.
  constexpr Size depth() const { return window * window * channels; }
};
using ConvolutionShape = ConvolutionSizes<std::int64_t>;

namespace kernels {

// Cross-correlation, which deep learning calls convolution (Goodfellow, Bengio and Courville: Deep
// Learning, 2016, equation 9.6):
//   y[n][p][q][k] = sum over r, s, c of x[n][p stride + r - padding][q stride + s - padding][c]
//                   weight[k][r][s][c],  where x is 0 outside the image
//   convolution    convolution_data_gradient    convolution_weight_gradient
//   shape     images N, height H, width W, channels C, outputs K, window R, stride, padding; the
//             output has P = (H + 2 padding - R) / stride + 1 rows, rounded down, and Q columns
//   operands  convolution: x ([N][H][W][C]), weight ([K][R][R][C]), y ([N][P][Q][K])
//             convolution_data_gradient: d_y, weight, d_x
//             convolution_weight_gradient: x, d_y, d_weight (read only when accumulating)
struct Convolution {
  static constexpr std::string_view name = "convolution";
  using Shape = ConvolutionShape;
  using Attributes = NoAttributes;
  static Launch prepare(const Shape&, DType, const Attributes&, const LaunchContext&);
};

struct ConvolutionDataGradient {
  static constexpr std::string_view name = "convolution_data_gradient";
  using Shape = ConvolutionShape;
  using Attributes = NoAttributes;
  static Launch prepare(const Shape&, DType, const Attributes&, const LaunchContext&);
};

struct ConvolutionWeightGradient {
  static constexpr std::string_view name = "convolution_weight_gradient";
  using Shape = ConvolutionShape;
  struct Attributes {
    static constexpr std::string_view names = "accumulate";
    bool accumulate = false;
  };
  static Launch prepare(const Shape&, DType, const Attributes&, const LaunchContext&);
};

}  // namespace kernels

std::vector<Kernel> convolution_kernels();

}  // namespace stepgate
