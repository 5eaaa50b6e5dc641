// SPDX-License-Identifier: MIT
// Operands, work and host references of the convolutions; convolution.h has their meaning and
// shapes.
#include "kernels/convolution/convolution.h"

#include <algorithm>
#include <cstddef>
#include <vector>

#include "kernels/extents.h"
#include "kernels/number_format.h"

namespace stepgate {
namespace {

constexpr auto input_numbers = [](const auto& s) { return s.input_pixels() * s.channels; };
constexpr auto weight_numbers = [](const auto& s) { return s.outputs * s.depth(); };
constexpr auto output_numbers = [](const auto& s) { return s.output_pixels() * s.outputs; };

// A multiply-add for each output and each number that it is made of; those with zeros around the
// image count, as libraries count them.
constexpr auto multiply_adds = [](const auto& s) { return 2 * output_numbers(s) * s.depth(); };

constexpr auto forward_operands = operands_of<kernels::Convolution>({
    {"x", Access::read, input_numbers},
    {"weight", Access::read, weight_numbers},
    {"y", Access::write, output_numbers},
});

constexpr auto data_gradient_operands = operands_of<kernels::ConvolutionDataGradient>({
    {"d_y", Access::read, output_numbers},
    {"weight", Access::read, weight_numbers},
    {"d_x", Access::write, input_numbers},
});

constexpr auto weight_gradient_operands = operands_of<kernels::ConvolutionWeightGradient>({
    {"x", Access::read, input_numbers},
    {"d_y", Access::read, output_numbers},
    {.name = "d_weight",
     .access = Access::read_write,
     .elements = weight_numbers,
     .accumulates = accumulates},
});

// GEMMs with the FLOPs of the convolutions, which a library computes without writing the unfolded
// images (Chetlur et al.: cuDNN, 2014, section 3.1).
constexpr LaunchFunction<kernels::Convolution, GemmSizes> forward_gemm =
    [](const ConvolutionShape& s, const auto&) {
      return GemmSizes{.rows = s.output_pixels(), .columns = s.outputs, .depth = s.depth()};
    };
constexpr LaunchFunction<kernels::ConvolutionDataGradient, GemmSizes> data_gradient_gemm =
    [](const ConvolutionShape& s, const auto&) {
      return GemmSizes{.rows = s.output_pixels(),
                       .columns = s.channels,
                       .depth = s.outputs * s.window * s.window};
    };
constexpr LaunchFunction<kernels::ConvolutionWeightGradient, GemmSizes> weight_gradient_gemm =
    [](const ConvolutionShape& s, const auto&) {
      return GemmSizes{.rows = s.outputs, .columns = s.depth(), .depth = s.output_pixels()};
    };

// Calls back with each row of a window that lies in the image: the first of its pixels in x, the
// first of its places in the window, and their number. They lie side by side in both.
template <class Visit>
void for_each_window_row(const ConvolutionShape& s, std::int64_t pixel, const Visit& visit) {
  const std::int64_t q = pixel % s.output_width();
  const std::int64_t p = pixel / s.output_width() % s.output_height();
  const std::int64_t image = pixel / (s.output_width() * s.output_height());
  const std::int64_t left = q * s.stride - s.padding;
  const std::int64_t first = std::max<std::int64_t>(0, -left);
  const std::int64_t end = std::min(s.window, s.width - left);
  if (first >= end) return;
  for (std::int64_t r = 0; r < s.window; ++r) {
    const std::int64_t row = p * s.stride + r - s.padding;
    if (row < 0 || row >= s.height) continue;
    visit((image * s.height + row) * s.width + left + first, r * s.window + first, end - first);
  }
}

using HostNumbers = std::vector<double>;

void store_all(void* to, DType dtype, const HostNumbers& numbers) {
  for (std::size_t i = 0; i < numbers.size(); ++i)
    set_number(to, dtype, static_cast<std::int64_t>(i), numbers[i]);
}

void forward_reference(const CallOf<kernels::Convolution>& call) {
  const ConvolutionShape& s = call.shape;
  const HostNumbers x = doubles_of(call.buffers[0], call.dtype, input_numbers(s));
  const HostNumbers weight = doubles_of(call.buffers[1], call.dtype, weight_numbers(s));
  for (std::int64_t pixel = 0; pixel < s.output_pixels(); ++pixel) {
    for (std::int64_t output = 0; output < s.outputs; ++output) {
      double sum = 0;
      for_each_window_row(s, pixel, [&](std::int64_t from, std::int64_t place, std::int64_t count) {
        const double* numbers = x.data() + from * s.channels;
        const double* factors = weight.data() + output * s.depth() + place * s.channels;
        for (std::int64_t i = 0; i < count * s.channels; ++i) sum += numbers[i] * factors[i];
      });
      set_number(call.buffers[2], call.dtype, pixel * s.outputs + output, sum);
    }
  }
}

// Calls back with each output pixel's gradients, those numbers of a factor that it meets, and their
// places: visit(d_y of the pixel and output, first number of x, first number of the weight, count).
template <class Visit>
void for_each_factor(const ConvolutionShape& s, const HostNumbers& d_y, const Visit& visit) {
  for (std::int64_t pixel = 0; pixel < s.output_pixels(); ++pixel) {
    for (std::int64_t output = 0; output < s.outputs; ++output) {
      const double gradient = d_y[static_cast<std::size_t>(pixel * s.outputs + output)];
      for_each_window_row(s, pixel, [&](std::int64_t from, std::int64_t place, std::int64_t count) {
        visit(gradient, from * s.channels, output * s.depth() + place * s.channels,
              count * s.channels);
      });
    }
  }
}

void data_gradient_reference(const CallOf<kernels::ConvolutionDataGradient>& call) {
  const ConvolutionShape& s = call.shape;
  const HostNumbers d_y = doubles_of(call.buffers[0], call.dtype, output_numbers(s));
  const HostNumbers weight = doubles_of(call.buffers[1], call.dtype, weight_numbers(s));
  HostNumbers d_x(static_cast<std::size_t>(input_numbers(s)));
  for_each_factor(s, d_y, [&](double gradient, std::int64_t x, std::int64_t w, std::int64_t count) {
    for (std::int64_t i = 0; i < count; ++i) d_x[x + i] += gradient * weight[w + i];
  });
  store_all(call.buffers[2], call.dtype, d_x);
}

void weight_gradient_reference(const CallOf<kernels::ConvolutionWeightGradient>& call) {
  const ConvolutionShape& s = call.shape;
  const HostNumbers x = doubles_of(call.buffers[0], call.dtype, input_numbers(s));
  const HostNumbers d_y = doubles_of(call.buffers[1], call.dtype, output_numbers(s));
  HostNumbers d_weight = call.attributes.accumulate
                             ? doubles_of(call.buffers[2], call.dtype, weight_numbers(s))
                             : HostNumbers(static_cast<std::size_t>(weight_numbers(s)));
  for_each_factor(s, d_y,
                  [&](double gradient, std::int64_t at, std::int64_t w, std::int64_t count) {
                    for (std::int64_t i = 0; i < count; ++i)
                      d_weight[w + i] += gradient * x[at + i];
                  });
  store_all(call.buffers[2], call.dtype, d_weight);
}

}  // namespace

// The shares are those of cuDNN 9.14 in the steps of a ResNet-50 and a UNet on an H200.
std::vector<Kernel> convolution_kernels() {
  return {row<kernels::Convolution, forward_reference>(
              forward_operands, multiply_adds, {.uses_workspace = true, .gemm = forward_gemm},
              {.share_of_rate = 0.97}),
          row<kernels::ConvolutionDataGradient, data_gradient_reference>(
              data_gradient_operands, multiply_adds,
              {.uses_workspace = true, .gemm = data_gradient_gemm}, {.share_of_rate = 0.93}),
          row<kernels::ConvolutionWeightGradient, weight_gradient_reference>(
              weight_gradient_operands, multiply_adds,
              {.uses_workspace = true, .gemm = weight_gradient_gemm}, {.share_of_rate = 0.85})};
}

}  // namespace stepgate
