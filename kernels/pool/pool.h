// SPDX-License-Identifier: MIT
// Pooling of images whose channels lie side by side (NHWC): the largest of each window of a batch
// norm with its relu, and the mean of an image. Launchers exist only in CUDA builds.
#pragma once

#include "kernels/kernel.h"

namespace stepgate {

// Square windows. Padding is at most half a window, so that each window has a place in the image.
struct WindowAttributes {
  static constexpr std::string_view names = "window stride padding";
  std::int64_t window = 1;  // at most 16, so that a byte tells a place
  std::int64_t stride = 1;
  std::int64_t padding = 0;  // on each side
};

// The number of windows along a side of an image.
template <class Size>
constexpr Size windows_along(Size side, const WindowAttributes& of) {
  return (side + 2 * of.padding - of.window) / of.stride + 1;
}

namespace kernels {

// The relu of a batch norm and its max pool in one, so that the relu's result is never stored:
// y[n][p][q][c] is the largest max(norm(x[n][h][w][c]), 0) of the window that begins at h = p
// stride - padding, w = q stride - padding. Places outside the image take no part. Values are
// compared after rounding, and the first of equal ones is chosen, row by row, as PyTorch does.
//   norm_pool
//   shape     images, height, width, columns
//   operands  x, statistics (fp32 [4][columns], of batch_norm_finish), y ([images][P][Q][columns]
//             with P = (height + 2 padding - window) / stride + 1, and Q alike of the width), which
//             (a byte for each y: the place in the window, counted row by row), chosen (for each y
//             the x of that place: batch_norm_gradient_sums of d_y and chosen, with relu, are the
//             sums over x, since places that no window chose add nothing)
struct NormPool {
  static constexpr std::string_view name = "norm_pool";
  template <class Size>
  struct Sizes {
    static constexpr std::string_view names = "images height width columns";
    Size images = 1;
    Size height = 1;
    Size width = 1;
    Size columns = 1;
  };
  using Shape = Sizes<std::int64_t>;
  using Attributes = WindowAttributes;
  static Launch prepare(const Shape&, DType, const Attributes&, const LaunchContext&);
};

// The max pool alone, of what is stored: y[n][p][q][c] is the largest x of the window of norm_pool,
// chosen as there. Its gradient with respect to x is the sum of d_y over the windows that chose a
// place.
//   max_pool    max_pool_gradient
//   shape     images, height, width, columns
//   operands  max_pool: x, y and which ([images][P][Q][columns], of norm_pool)
//             max_pool_gradient: d_y and which, d_x
struct MaxPool {
  static constexpr std::string_view name = "max_pool";
  using Shape = NormPool::Shape;
  using Attributes = WindowAttributes;
  static Launch prepare(const Shape&, DType, const Attributes&, const LaunchContext&);
};

struct MaxPoolGradient {
  static constexpr std::string_view name = "max_pool_gradient";
  using Shape = NormPool::Shape;
  using Attributes = WindowAttributes;
  static Launch prepare(const Shape&, DType, const Attributes&, const LaunchContext&);
};

// The gradient of norm_pool with respect to x, d_x = scale (d - mean of d - n mean of (d n)) with
// n = (x - mean) / deviation: d of a place is the sum of d_y over the windows that chose it, and 0
// where norm(x) is not positive.
//   shape     images, height, width, columns
//   operands  d_y and which ([images][P][Q][columns]), x, statistics (fp32 [4][columns]), means
//             (fp32 [2][columns], of batch_norm_gradient_finish), d_x (may be x)
struct NormPoolGradient {
  static constexpr std::string_view name = "norm_pool_gradient";
  using Shape = NormPool::Shape;
  using Attributes = WindowAttributes;
  static Launch prepare(const Shape&, DType, const Attributes&, const LaunchContext&);
};

// The mean over the pixels of each image, y[n][c] = mean of x[n][p][c], and its gradient,
// d_x[n][p][c] = d_y[n][c] / pixels. sum_pixels is the sum where mean_pool is the mean, for images
// of many pixels.
//   mean_pool    mean_pool_gradient    sum_pixels
//   shape     images, pixels, columns
//   operands  mean_pool, sum_pixels: x ([images][pixels][columns]), y ([images][columns])
//             mean_pool_gradient: d_y ([images][columns]), d_x ([images][pixels][columns])
struct MeanPool {
  static constexpr std::string_view name = "mean_pool";
  template <class Size>
  struct Sizes {
    static constexpr std::string_view names = "images pixels columns";
    Size images = 1;
    Size pixels = 1;
    Size columns = 1;
  };
  using Shape = Sizes<std::int64_t>;
  using Attributes = NoAttributes;
  static Launch prepare(const Shape&, DType, const Attributes&, const LaunchContext&);
};

struct MeanPoolGradient {
  static constexpr std::string_view name = "mean_pool_gradient";
  using Shape = MeanPool::Shape;
  using Attributes = NoAttributes;
  static Launch prepare(const Shape&, DType, const Attributes&, const LaunchContext&);
};

struct SumPixels {
  static constexpr std::string_view name = "sum_pixels";
  using Shape = MeanPool::Shape;
  using Attributes = NoAttributes;
  static Launch prepare(const Shape&, DType, const Attributes&, const LaunchContext&);
};

}  // namespace kernels

std::vector<Kernel> pool_kernels();

}  // namespace stepgate
