// SPDX-License-Identifier: MIT
// Operands, work and host references of pooling; pool.h has their meaning and shapes.
#include "kernels/pool/pool.h"

#include <algorithm>
#include <cmath>

#include "kernels/batch_norm/batch_statistics.h"

namespace stepgate {
namespace {

constexpr auto pixels_of_images = [](const auto& s) { return s.images * s.height * s.width; };
constexpr auto in_image = [](const auto& s) { return pixels_of_images(s) * s.columns; };
constexpr auto in_windows = [](const auto& s, const WindowAttributes& told) {
  return s.images * windows_along(s.height, told) * windows_along(s.width, told) * s.columns;
};

constexpr auto norm_pool_operands = operands_of<kernels::NormPool>({
    {"x", Access::read, in_image},
    {"statistics", Access::read, extent::batch_statistics, OperandFormat::single},
    {"y", Access::write, in_windows},
    {"which", Access::write, in_windows, OperandFormat::byte},
    {"chosen", Access::write, in_windows},
});

// The images and their windows.
struct Windows {
  std::int64_t height, width, columns;
  WindowAttributes of;
  std::int64_t down, across;  // windows along the sides

  Windows(const auto& shape, const WindowAttributes& attributes)
      : height(shape.height),
        width(shape.width),
        columns(shape.columns),
        of(attributes),
        down(windows_along(shape.height, of)),
        across(windows_along(shape.width, of)) {}
};

struct Chosen {
  double value;
  std::int64_t place;  // in the window
};

// Chooses the largest value of the window that begins at (top, left); `value` returns the value of
// a place of the image.
template <class Value>
Chosen largest_of_window(const Windows& windows, std::int64_t top, std::int64_t left, Value value) {
  Chosen best{0, -1};
  for (std::int64_t place = 0; place < windows.of.window * windows.of.window; ++place) {
    const std::int64_t h = top + place / windows.of.window, w = left + place % windows.of.window;
    if (h < 0 || h >= windows.height || w < 0 || w >= windows.width) continue;
    const double other = value(h, w);
    const bool is_first_nan = std::isnan(other) && !std::isnan(best.value);
    if (best.place < 0 || other > best.value || is_first_nan) best = {other, place};
  }
  return best;
}

// Calls store(i, value, place, element) for each window i with its choice, which is an element of
// the images; value_of(element) returns what is compared.
template <class Call, class Value, class Store>
void pool_windows(const Call& call, Value value_of, Store store) {
  const Windows windows(call.shape, call.attributes);
  const WindowAttributes& of = windows.of;
  const std::int64_t columns = windows.columns;
  const auto count = static_cast<std::int64_t>(in_windows(call.shape, call.attributes));
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t c = i % columns, q = i / columns % windows.across;
    const std::int64_t p = i / columns / windows.across % windows.down;
    const std::int64_t image = i / columns / windows.across / windows.down;
    const auto element = [&](std::int64_t h, std::int64_t w) {
      return ((image * windows.height + h) * windows.width + w) * columns + c;
    };
    const std::int64_t top = p * of.stride - of.padding, left = q * of.stride - of.padding;
    const auto [value, place] =
        largest_of_window(windows, top, left,
                          [&](std::int64_t h, std::int64_t w) { return value_of(element(h, w)); });
    store(i, value, place, element(top + place / of.window, left + place % of.window));
  }
}

void norm_pool_reference(const CallOf<kernels::NormPool>& call) {
  const auto& at = call.buffers;
  const HostStatistics norm{at[1], single_of(call.dtype), call.shape.columns};
  const auto x_of = [&](std::int64_t element) { return number_at(at[0], call.dtype, element); };
  pool_windows(
      call,
      [&](std::int64_t element) {
        const double value = norm.normed(x_of(element), element % call.shape.columns);
        return stored_number(call.dtype, value <= 0 ? 0.0 : value);
      },
      [&](std::int64_t i, double value, std::int64_t place, std::int64_t element) {
        set_number(at[2], call.dtype, i, value);
        static_cast<std::uint8_t*>(at[3])[i] = static_cast<std::uint8_t>(place);
        set_number(at[4], call.dtype, i, x_of(element));
      });
}

constexpr auto max_pool_operands = operands_of<kernels::MaxPool>({
    {"x", Access::read, in_image},
    {"y", Access::write, in_windows},
    {"which", Access::write, in_windows, OperandFormat::byte},
});

void max_pool_reference(const CallOf<kernels::MaxPool>& call) {
  const auto& at = call.buffers;
  pool_windows(
      call, [&](std::int64_t element) { return number_at(at[0], call.dtype, element); },
      [&](std::int64_t i, double value, std::int64_t place, std::int64_t) {
        set_number(at[1], call.dtype, i, value);
        static_cast<std::uint8_t*>(at[2])[i] = static_cast<std::uint8_t>(place);
      });
}

// Returns the sum of d_y over the windows that chose element i of the images.
double gradient_of_windows(const Windows& windows, const void* d_y, const void* which, DType dtype,
                           std::int64_t i) {
  const std::int64_t window = windows.of.window, stride = windows.of.stride;
  const std::int64_t padding = windows.of.padding;
  const std::int64_t c = i % windows.columns, pixel = i / windows.columns;
  const std::int64_t image = pixel / windows.width / windows.height;
  const std::int64_t bottom = pixel / windows.width % windows.height + padding;
  const std::int64_t right = pixel % windows.width + padding;
  const auto first = [&](std::int64_t last_place) {
    return last_place < window ? 0 : (last_place - window) / stride + 1;
  };
  double sum = 0;
  for (std::int64_t p = first(bottom); p <= std::min(bottom / stride, windows.down - 1); ++p) {
    for (std::int64_t q = first(right); q <= std::min(right / stride, windows.across - 1); ++q) {
      const std::int64_t place = (bottom - p * stride) * window + right - q * stride;
      const std::int64_t y =
          ((image * windows.down + p) * windows.across + q) * windows.columns + c;
      if (static_cast<const std::uint8_t*>(which)[y] == place) sum += number_at(d_y, dtype, y);
    }
  }
  return sum;
}

constexpr auto max_pool_gradient_operands = operands_of<kernels::MaxPoolGradient>({
    {"d_y", Access::read, in_windows},
    {"which", Access::read, in_windows, OperandFormat::byte},
    {"d_x", Access::write, in_image},
});

void max_pool_gradient_reference(const CallOf<kernels::MaxPoolGradient>& call) {
  const auto& at = call.buffers;
  const Windows windows(call.shape, call.attributes);
  for (std::int64_t i = 0; i < static_cast<std::int64_t>(in_image(call.shape)); ++i)
    set_number(at[2], call.dtype, i, gradient_of_windows(windows, at[0], at[1], call.dtype, i));
}

constexpr auto norm_pool_gradient_operands = operands_of<kernels::NormPoolGradient>({
    {"d_y", Access::read, in_windows},
    {"which", Access::read, in_windows, OperandFormat::byte},
    {"x", Access::read, in_image},
    {"statistics", Access::read, extent::batch_statistics, OperandFormat::single},
    {"means", Access::read, extent::batch_means, OperandFormat::single},
    {.name = "d_x", .access = Access::write, .elements = in_image, .may_replace = 2},
});

void norm_pool_gradient_reference(const CallOf<kernels::NormPoolGradient>& call) {
  const auto& at = call.buffers;
  const Windows windows(call.shape, call.attributes);
  const HostStatistics norm{at[3], single_of(call.dtype), windows.columns};
  const auto d = [&](std::int64_t i) {
    const double value = norm.normed(number_at(at[2], call.dtype, i), i % windows.columns);
    return value > 0 ? gradient_of_windows(windows, at[0], at[1], call.dtype, i) : 0;
  };
  apply_batch_gradient({pixels_of_images(call.shape), windows.columns}, call.dtype, at[2], at[3],
                       at[4], at[5], d);
}

constexpr auto of_images = [](const auto& s) { return s.images * s.columns; };
constexpr auto of_pixels = [](const auto& s) { return s.images * s.pixels * s.columns; };

constexpr auto mean_pool_operands = operands_of<kernels::MeanPool>({
    {"x", Access::read, of_pixels},
    {"y", Access::write, of_images},
});

// Writes the sums over the pixels of each image, each divided by `divisor`.
void sum_pixels(const CallOf<kernels::MeanPool>& call, double divisor) {
  const auto [images, pixels, columns] = call.shape;
  for (std::int64_t i = 0; i < images * columns; ++i) {
    const std::int64_t first = i / columns * pixels * columns + i % columns;
    double sum = 0;
    for (std::int64_t pixel = 0; pixel < pixels; ++pixel)
      sum += number_at(call.buffers[0], call.dtype, first + pixel * columns);
    set_number(call.buffers[1], call.dtype, i, sum / divisor);
  }
}

void mean_pool_reference(const CallOf<kernels::MeanPool>& call) {
  sum_pixels(call, static_cast<double>(call.shape.pixels));
}

void sum_pixels_reference(const CallOf<kernels::SumPixels>& call) {
  sum_pixels(call, 1);
}

constexpr auto mean_pool_gradient_operands = operands_of<kernels::MeanPoolGradient>({
    {"d_y", Access::read, of_images},
    {"d_x", Access::write, of_pixels},
});

void mean_pool_gradient_reference(const CallOf<kernels::MeanPoolGradient>& call) {
  const auto [images, pixels, columns] = call.shape;
  for (std::int64_t i = 0; i < images * pixels * columns; ++i) {
    const std::int64_t of = i / columns / pixels * columns + i % columns;
    const double d_y = number_at(call.buffers[0], call.dtype, of);
    set_number(call.buffers[1], call.dtype, i, d_y / static_cast<double>(pixels));
  }
}

}  // namespace

// norm_pool computes norm and relu of each place once, and compares each place of each window. Its
// gradient adds the d_y of each window once, and computes norm and relu again. The shares of a
// device's speed are those of a ResNet-50's and a UNet's step on an H200.
std::vector<Kernel> pool_kernels() {
  using namespace kernels;
  return {row<NormPool, norm_pool_reference>(norm_pool_operands,
                                             [](const auto& s, const WindowAttributes& told) {
                                               return 4 * in_image(s) + told.window * told.window *
                                                                            in_windows(s, told);
                                             },
                                             {}, {.share_of_rate = 0.6}),
          row<NormPoolGradient, norm_pool_gradient_reference>(
              norm_pool_gradient_operands,
              [](const auto& s, const WindowAttributes& told) {
                return 9 * in_image(s) + in_windows(s, told);
              },
              {}, {.share_of_rate = 0.74}),
          row<MaxPool, max_pool_reference>(max_pool_operands,
                                           [](const auto& s, const WindowAttributes& told) {
                                             return told.window * told.window * in_windows(s, told);
                                           }),
          row<MaxPoolGradient, max_pool_gradient_reference>(max_pool_gradient_operands, in_windows),
          row<MeanPool, mean_pool_reference>(
              mean_pool_operands, [](const auto& s) { return of_pixels(s) + of_images(s); }),
          row<MeanPoolGradient, mean_pool_gradient_reference>(
              mean_pool_gradient_operands, [](const auto& s) { return of_pixels(s); }, {},
              {.share_of_rate = 0.58}),
          row<SumPixels, sum_pixels_reference>(mean_pool_operands, of_pixels, {},
                                               {.share_of_rate = 0.38})};
}

}  // namespace stepgate
