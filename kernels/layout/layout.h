// SPDX-License-Identifier: MIT
// The order in which the numbers of images lie. Launchers exist only in CUDA builds.
#pragma once

#include "kernels/kernel.h"

namespace stepgate {

namespace kernels {

// Copies images whose channels lie side by side in each pixel (NHWC, PyTorch's channels_last) to
// images whose pixels lie side by side in each channel (NCHW), or back: y[n][c][r] = x[n][r][c].
// Rows are pixels and columns channels, or the other way round. The copy has the same bits.
//   change_layout
//   shape     images, rows, columns
//   operands  x ([images][rows][columns]), y ([images][columns][rows])
struct ChangeLayout {
  static constexpr std::string_view name = "change_layout";
  template <class Size>
  struct Sizes {
    static constexpr std::string_view names = "images rows columns";
    Size images = 1;
    Size rows = 1;
    Size columns = 1;
  };
  using Shape = Sizes<std::int64_t>;
  using Attributes = NoAttributes;
  static Launch prepare(const Shape&, DType, const Attributes&, const LaunchContext&);
};

}  // namespace kernels

std::vector<Kernel> layout_kernels();

}  // namespace stepgate
