// SPDX-License-Identifier: MIT
// CUDA kernels and launchers of pooling; pool.h has their meaning and shapes.
#include "kernels/pool/pool.h"

#include <limits>

#include "kernels/batch_norm/batch_norm.cuh"

namespace stepgate {
namespace {

// The images and their windows. Pixels are counted in 32 bits.
struct Windows {
  int height, width;
  int window, stride, padding;
  int down, across;  // windows along the sides

  Windows(std::string_view kernel, const auto& shape, const WindowAttributes& of)
      : height(static_cast<int>(shape.height)),
        width(static_cast<int>(shape.width)),
        window(static_cast<int>(of.window)),
        stride(static_cast<int>(of.stride)),
        padding(static_cast<int>(of.padding)),
        down(static_cast<int>(windows_along(shape.height, of))),
        across(static_cast<int>(windows_along(shape.width, of))) {
    // There may be one window more than pixels along a side.
    if (shape.images * (shape.height + 1) * (shape.width + 1) <= std::numeric_limits<int>::max())
      return;
    throw std::runtime_error(std::string(kernel) +
                             ": more than 2^31 - 1 pixels; make the batch smaller");
  }
  Windows() = default;
};

template <class Number>
struct NormPoolOnDevice {
  static constexpr bool has_sums = false;
  static constexpr int rows_at_once = 1, rows_of_thread = 4;
  Windows windows;
  const Number* x;
  const float* statistics;
  Number* y;
  std::uint8_t* which;
  std::int64_t columns;

  struct Nothing {};
  template <bool whole>
  __device__ NormOfColumns constants(std::int64_t column, int count) const {
    return NormOfColumns::at<whole>(statistics, columns, column, count);
  }
  template <bool whole>
  __device__ Nothing read(const Spot&) const {
    return {};
  }
  // Values are compared as they are stored. The first place of a window wins unless a later one is
  // larger, or a NaN.
  template <bool whole>
  __device__ void finish(const Spot& spot, const NormOfColumns& column, const Nothing&,
                         ColumnSums&) const {
    const int output = static_cast<int>(spot.row);
    const int top = output / windows.across % windows.down * windows.stride - windows.padding;
    const int left = output % windows.across * windows.stride - windows.padding;
    const int image = output / windows.across / windows.down;
    float best[octet] = {};
    Octet<std::uint8_t> chosen{};
    bool is_first = true;
    for (int place = 0; place < windows.window * windows.window; ++place) {
      const int h = top + place / windows.window, w = left + place % windows.window;
      if (h < 0 || h >= windows.height || w < 0 || w >= windows.width) continue;
      const std::int64_t pixel = (image * windows.height + h) * windows.width + w;
      const auto numbers = load_octet<whole>(x, pixel * columns + spot.column, spot.count);
#pragma unroll
      for (int i = 0; i < octet; ++i) {
        const float norm = column.normed(number_of(numbers, i), i);
        const float value = to_float(from_float<Number>(norm <= 0.0f ? 0.0f : norm));
        if (!is_first && !(value > best[i]) && value == value) continue;
        best[i] = value;
        chosen.values[i] = static_cast<std::uint8_t>(place);
      }
      is_first = false;
    }
    store_octet<whole>(y, spot.index, spot.count, packed<Number>(best));
    store_octet<whole>(which, spot.index, spot.count, chosen);
  }
};

// d of a place before the relu: the sum of d_y over the windows that chose it, in their order.
template <class Number>
struct PooledGradient {
  static constexpr bool has_relu = true;
  static constexpr int rows_at_once = rows_in_flight<Number> / 2;  // each of several windows
  Windows windows;
  const Number* d_y;
  const std::uint8_t* which;
  std::int64_t columns;

  struct Inputs {
    float d[octet];
  };
  // The first window along a side that has the place, which is counted from the padding's edge.
  __device__ int first_with(int place) const {
    return place < windows.window ? 0 : (place - windows.window) / windows.stride + 1;
  }
  template <bool whole>
  __device__ Inputs read(const Spot& spot) const {
    const int pixel = static_cast<int>(spot.row);
    const int bottom = pixel / windows.width % windows.height + windows.padding;
    const int right = pixel % windows.width + windows.padding;
    const int image = pixel / windows.width / windows.height;
    const int last_p = min(bottom / windows.stride, windows.down - 1);
    const int last_q = min(right / windows.stride, windows.across - 1);
    Inputs sums{};
    for (int p = first_with(bottom); p <= last_p; ++p) {
      for (int q = first_with(right); q <= last_q; ++q) {
        const int place =
            (bottom - p * windows.stride) * windows.window + right - q * windows.stride;
        const std::int64_t output = (image * windows.down + p) * windows.across + q;
        const std::int64_t index = output * columns + spot.column;
        const auto chosen = load_octet<whole>(which, index, spot.count);
        const auto numbers = load_octet<whole>(d_y, index, spot.count);
#pragma unroll
        for (int i = 0; i < octet; ++i) {
          if (chosen.values[i] == place) sums.d[i] += number_of(numbers, i);
        }
      }
    }
    return sums;
  }
  __device__ float at(const Inputs& inputs, int i) const {
    return inputs.d[i];
  }
  template <bool whole>
  __device__ void keep(const Spot&, const float (&)[octet]) const {}
};

template <class Number>
struct MeanPoolOnDevice {
  static constexpr bool has_sums = false;
  static constexpr int rows_at_once = 1, rows_of_thread = 1;
  const Number* x;
  Number* y;
  std::int64_t pixels, columns;

  struct Nothing {};
  template <bool whole>
  __device__ Nothing constants(std::int64_t, int) const {
    return {};
  }
  template <bool whole>
  __device__ Nothing read(const Spot&) const {
    return {};
  }
  template <bool whole>
  __device__ void finish(const Spot& spot, const Nothing&, const Nothing&, ColumnSums&) const {
    float sums[octet] = {};
#pragma unroll 8
    for (std::int64_t pixel = 0; pixel < pixels; ++pixel) {
      const auto numbers =
          load_octet<whole>(x, (spot.row * pixels + pixel) * columns + spot.column, spot.count);
#pragma unroll
      for (int i = 0; i < octet; ++i) sums[i] += number_of(numbers, i);
    }
#pragma unroll
    for (int i = 0; i < octet; ++i) sums[i] /= static_cast<float>(pixels);
    store_octet<whole>(y, spot.index, spot.count, packed<Number>(sums));
  }
};

template <class Number>
struct MeanPoolGradientOnDevice {
  static constexpr bool has_sums = false;
  static constexpr int rows_at_once = rows_in_flight<Number>, rows_of_thread = 4;
  const Number* d_y;
  Number* d_x;
  std::int64_t pixels, columns;

  struct Nothing {};
  template <bool whole>
  __device__ Nothing constants(std::int64_t, int) const {
    return {};
  }
  template <bool whole>
  __device__ Octet<Number> read(const Spot& spot) const {
    return load_octet<whole>(d_y, spot.row / pixels * columns + spot.column, spot.count);
  }
  template <bool whole>
  __device__ void finish(const Spot& spot, const Nothing&, const Octet<Number>& d,
                         ColumnSums&) const {
    float shares[octet];
#pragma unroll
    for (int i = 0; i < octet; ++i) shares[i] = number_of(d, i) / static_cast<float>(pixels);
    store_octet<whole>(d_x, spot.index, spot.count, packed<Number>(shares));
  }
};

}  // namespace

Launch kernels::NormPool::prepare(const Shape& shape, DType dtype, const Attributes& attributes,
                                  const LaunchContext&) {
  const Windows windows(name, shape, attributes);
  return with_storage(dtype, [&](auto zero) -> Launch {
    using Number = decltype(zero);
    return [=](void* const* buffers, cudaStream_t stream) {
      const NormPoolOnDevice<Number> element{windows,
                                             static_cast<const Number*>(buffers[0]),
                                             static_cast<const float*>(buffers[1]),
                                             static_cast<Number*>(buffers[2]),
                                             static_cast<std::uint8_t*>(buffers[3]),
                                             shape.columns};
      const bool aligned =
          aligned_to_access(element.x, element.statistics, element.y, element.which);
      launch_walk(name, element, {shape.images * windows.down * windows.across, shape.columns},
                  aligned, stream);
    };
  });
}

Launch kernels::NormPoolGradientSums::prepare(const Shape& shape, DType dtype,
                                              const Attributes& attributes, const LaunchContext&) {
  const Windows windows(name, shape, attributes);
  return with_storage(dtype, [&](auto zero) -> Launch {
    using Number = decltype(zero);
    return [=](void* const* buffers, cudaStream_t stream) {
      const PooledGradient<Number> source{windows, static_cast<const Number*>(buffers[0]),
                                          static_cast<const std::uint8_t*>(buffers[1]),
                                          shape.columns};
      const GradientSumsOnDevice<Number, PooledGradient<Number>> element{
          source, static_cast<const Number*>(buffers[2]), static_cast<const float*>(buffers[3]),
          static_cast<float*>(buffers[4]), shape.columns};
      const bool aligned =
          aligned_to_access(source.d_y, source.which, element.x, element.statistics);
      launch_walk(name, element,
                  {shape.images * shape.height * shape.width, shape.columns, shape.parts}, aligned,
                  stream);
    };
  });
}

Launch kernels::NormPoolGradient::prepare(const Shape& shape, DType dtype,
                                          const Attributes& attributes, const LaunchContext&) {
  const Windows windows(name, shape, attributes);
  return with_storage(dtype, [&](auto zero) -> Launch {
    using Number = decltype(zero);
    return [=](void* const* buffers, cudaStream_t stream) {
      const PooledGradient<Number> source{windows, static_cast<const Number*>(buffers[0]),
                                          static_cast<const std::uint8_t*>(buffers[1]),
                                          shape.columns};
      const GradientApplyOnDevice<Number, PooledGradient<Number>> element{
          source,
          static_cast<const Number*>(buffers[2]),
          static_cast<const float*>(buffers[3]),
          static_cast<const float*>(buffers[4]),
          static_cast<Number*>(buffers[5]),
          shape.columns};
      const bool aligned = aligned_to_access(source.d_y, source.which, element.x,
                                             element.statistics, element.means, element.d_x);
      launch_walk(name, element, {shape.images * shape.height * shape.width, shape.columns},
                  aligned, stream);
    };
  });
}

Launch kernels::MeanPool::prepare(const Shape& shape, DType dtype, const Attributes&,
                                  const LaunchContext&) {
  return with_storage(dtype, [&](auto zero) -> Launch {
    using Number = decltype(zero);
    return [=](void* const* buffers, cudaStream_t stream) {
      const MeanPoolOnDevice<Number> element{static_cast<const Number*>(buffers[0]),
                                             static_cast<Number*>(buffers[1]), shape.pixels,
                                             shape.columns};
      launch_walk(name, element, {shape.images, shape.columns},
                  aligned_to_access(element.x, element.y), stream);
    };
  });
}

Launch kernels::MeanPoolGradient::prepare(const Shape& shape, DType dtype, const Attributes&,
                                          const LaunchContext&) {
  return with_storage(dtype, [&](auto zero) -> Launch {
    using Number = decltype(zero);
    return [=](void* const* buffers, cudaStream_t stream) {
      const MeanPoolGradientOnDevice<Number> element{static_cast<const Number*>(buffers[0]),
                                                     static_cast<Number*>(buffers[1]), shape.pixels,
                                                     shape.columns};
      launch_walk(name, element, {shape.images * shape.pixels, shape.columns},
                  aligned_to_access(element.d_y, element.d_x), stream);
    };
  });
}

}  // namespace stepgate
