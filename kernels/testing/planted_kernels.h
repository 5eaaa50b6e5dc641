// SPDX-License-Identifier: MIT
// Kernels that no step needs, with more sizes, attributes and operands than any kernel of the
// catalogue. They show that no code limits these numbers.
#pragma once

#include <algorithm>
#include <cstring>

#include "kernels/declare.h"
#include "kernels/number_format.h"
#ifdef STEPGATE_WITH_CUDA
#include <cuda_runtime_api.h>

#include <stdexcept>
#endif

namespace stepgate {

namespace kernels {

// Correlation of images with filters that leave numbers out, with more sizes than any kernel has:
//   y[n][f][i][j] = scale sum over c, a, b of x[n][c][i stride + a dilation - padding][...]
//                   w[f][c][a][b], or y += that sum; x is 0 outside the image
//   operands  x [samples][channels][height][width], w [filters][channels][filter_height]
//             [filter_width], y [samples][filters][rows][columns]
// It has no launcher.
struct DilatedConvolution {
  static constexpr std::string_view name = "dilated_convolution";
  template <class Size>
  struct Sizes {
    static constexpr std::string_view names = "samples channels height width filters";
    Size samples = 1;
    Size channels = 1;
    Size height = 1;
    Size width = 1;
    Size filters = 1;
  };
  using Shape = Sizes<std::int64_t>;
  struct Attributes {
    static constexpr std::string_view names =
        "filter_height filter_width stride padding dilation scale accumulate";
    std::int64_t filter_height = 1;
    std::int64_t filter_width = 1;
    int stride = 1;
    int padding = 0;
    int dilation = 1;
    double scale = 1;
    bool accumulate = false;
  };

  // Number of positions of a filter along a side of an image.
  template <class Size>
  static constexpr Size positions(Size side, std::int64_t filter, const Attributes& told) {
    return (side + (2 * told.padding - (filter - 1) * told.dilation - 1)) / told.stride + 1;
  }
};

// out = the numbers of in0, then those of in1, and so on for eight inputs.
struct Concatenation {
  static constexpr std::string_view name = "concatenation";
  template <class Size>
  struct Sizes {
    static constexpr std::string_view names = "numbers";
    Size numbers = 1;  // of an input
  };
  using Shape = Sizes<std::int64_t>;
  using Attributes = NoAttributes;
  static constexpr std::size_t inputs = 8;

#ifdef STEPGATE_WITH_CUDA
  static Launch prepare(const Shape& shape, DType dtype, const Attributes&, const LaunchContext&) {
    const auto bytes = static_cast<std::size_t>(shape.numbers * bytes_of(dtype));
    return [bytes](void* const* buffers, CUstream_st* stream) {
      for (std::size_t input = 0; input < inputs; ++input) {
        if (cudaMemcpyAsync(static_cast<std::byte*>(buffers[inputs]) + input * bytes,
                            buffers[input], bytes, cudaMemcpyDeviceToDevice, stream) != cudaSuccess)
          throw std::runtime_error("concatenation: a copy is refused");
      }
    };
  }
#endif
};

}  // namespace kernels

namespace planted {

inline constexpr auto results = [](const auto& s,
                                   const kernels::DilatedConvolution::Attributes& told) {
  return s.samples * s.filters *
         kernels::DilatedConvolution::positions(s.height, told.filter_height, told) *
         kernels::DilatedConvolution::positions(s.width, told.filter_width, told);
};
inline constexpr auto weights = [](const auto& s,
                                   const kernels::DilatedConvolution::Attributes& told) {
  return s.filters * s.channels * told.filter_height * told.filter_width;
};

inline constexpr auto convolution_operands = operands_of<kernels::DilatedConvolution>({
    {"x", Access::read, [](const auto& s) { return s.samples * s.channels * s.height * s.width; }},
    {"w", Access::read, weights},
    {.name = "y",
     .access = Access::read_write,
     .elements = results,
     .accumulates = [](const auto& told) { return told.accumulate; }},
});

inline void convolution_reference(const CallOf<kernels::DilatedConvolution>& call) {
  const auto [samples, channels, height, width, filters] = call.shape;
  const auto& told = call.attributes;
  const std::int64_t rows =
      kernels::DilatedConvolution::positions(height, told.filter_height, told);
  const std::int64_t columns =
      kernels::DilatedConvolution::positions(width, told.filter_width, told);
  const auto x = [&](std::int64_t image, std::int64_t i, std::int64_t j) {
    const bool inside = i >= 0 && i < height && j >= 0 && j < width;
    return inside ? number_at(call.buffers[0], call.dtype, (image * height + i) * width + j) : 0;
  };
  std::int64_t result = 0;
  for (std::int64_t n = 0; n < samples; ++n)
    for (std::int64_t f = 0; f < filters; ++f)
      for (std::int64_t i = 0; i < rows; ++i)
        for (std::int64_t j = 0; j < columns; ++j, ++result) {
          double sum = 0;
          std::int64_t weight = f * channels * told.filter_height * told.filter_width;
          for (std::int64_t c = 0; c < channels; ++c)
            for (std::int64_t a = 0; a < told.filter_height; ++a)
              for (std::int64_t b = 0; b < told.filter_width; ++b, ++weight)
                sum += number_at(call.buffers[1], call.dtype, weight) *
                       x(n * channels + c, i * told.stride + a * told.dilation - told.padding,
                         j * told.stride + b * told.dilation - told.padding);
          const double old = told.accumulate ? number_at(call.buffers[2], call.dtype, result) : 0;
          set_number(call.buffers[2], call.dtype, result, old + told.scale * sum);
        }
}

inline constexpr auto numbers = [](const auto& s) { return s.numbers; };
inline constexpr auto concatenation_operands = operands_of<kernels::Concatenation>({
    {"in0", Access::read, numbers},
    {"in1", Access::read, numbers},
    {"in2", Access::read, numbers},
    {"in3", Access::read, numbers},
    {"in4", Access::read, numbers},
    {"in5", Access::read, numbers},
    {"in6", Access::read, numbers},
    {"in7", Access::read, numbers},
    {"out", Access::write, [](const auto& s) { return 8 * s.numbers; }},
});

inline void concatenation_reference(const CallOf<kernels::Concatenation>& call) {
  const auto bytes = static_cast<std::size_t>(call.shape.numbers * bytes_of(call.dtype));
  for (std::size_t input = 0; input < kernels::Concatenation::inputs; ++input)
    std::memcpy(static_cast<std::byte*>(call.buffers.back()) + input * bytes, call.buffers[input],
                bytes);
}

}  // namespace planted

inline const Kernel& convolution() {
  static const Kernel made = row<kernels::DilatedConvolution, planted::convolution_reference>(
      planted::convolution_operands,
      [](const auto& s, const kernels::DilatedConvolution::Attributes& told) {
        return 2 * planted::results(s, told) * s.channels * told.filter_height * told.filter_width;
      });
  return made;
}

inline const Kernel& concatenation() {
  static const Kernel made = row<kernels::Concatenation, planted::concatenation_reference>(
      planted::concatenation_operands, [](const auto&) -> CheckedSize { return 0; });
  return made;
}

}  // namespace stepgate
