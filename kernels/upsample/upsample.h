// SPDX-License-Identifier: MIT
// Images of twice the height and width. Launchers exist only in CUDA builds.
#pragma once

#include "kernels/kernel.h"

namespace stepgate {

namespace kernels {

// Each pixel becomes a square of 2 x 2 equal ones (torch.nn.Upsample with its mode "nearest"), and
// the gradient of that, which is the sum over the square.
//   upsample    upsample_gradient
//   shape     images, height and width of x, columns
//   operands  upsample: x ([images][height][width][columns]), y ([images][2 height][2
//               width][columns])
//             upsample_gradient: d_y ([images][2 height][2 width][columns]), d_x
struct Upsample {
  static constexpr std::string_view name = "upsample";
  template <class Size>
  struct Sizes {
    static constexpr std::string_view names = "images height width columns";
    Size images = 1;
    Size height = 1;
    Size width = 1;
    Size columns = 1;
  };
  using Shape = Sizes<std::int64_t>;
  using Attributes = NoAttributes;
  static Launch prepare(const Shape&, DType, const Attributes&, const LaunchContext&);
};

struct UpsampleGradient {
  static constexpr std::string_view name = "upsample_gradient";
  using Shape = Upsample::Shape;
  using Attributes = NoAttributes;
  static Launch prepare(const Shape&, DType, const Attributes&, const LaunchContext&);
};

}  // namespace kernels

std::vector<Kernel> upsample_kernels();

}  // namespace stepgate
