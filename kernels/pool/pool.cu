// SPDX-License-Identifier: MIT
// CUDA kernels and launchers of pooling; pool.h has their meaning and shapes.
#include "kernels/pool/pool.h"

#include <limits>

#include "kernels/batch_norm/batch_norm.cuh"

namespace stepgate {
namespace {

// Divides numbers from 0 to 2^31 - 1 by one that the host knows, without the division that GPUs
// lack (Granlund and Montgomery: Division by invariant integers using multiplication, 1994,
// figure 4.1).
class Divisor {
 public:
  Divisor() = default;
  explicit Divisor(int by) : by_(by) {
    while ((std::int64_t{1} << shift_) < by) ++shift_;
    multiplier_ = static_cast<std::uint32_t>(
        ((((std::uint64_t{1} << shift_) - static_cast<std::uint64_t>(by)) << 32) /
         static_cast<std::uint64_t>(by)) +
        1);
  }
  __device__ __forceinline__ int quotient(int of) const {
    const auto number = static_cast<std::uint32_t>(of);
    return static_cast<int>((__umulhi(multiplier_, number) + number) >> shift_);
  }
  // The remainder for a known quotient.
  __device__ __forceinline__ int rest(int of, int quotient) const { return of - quotient * by_; }

 private:
  int by_ = 1, shift_ = 0;
  std::uint32_t multiplier_ = 1;
};

// The images and their windows. Pixels are counted in 32 bits.
struct Windows {
  int height, width;
  int window, stride, padding;
  int down, across;  // windows along the sides
  Divisor by_height, by_width, by_down, by_across, by_stride;

  // At most two windows along a side have a place.
  bool overlap_once() const { return window <= 2 * stride; }

  Windows(std::string_view kernel, const auto& shape, const WindowAttributes& of)
      : height(static_cast<int>(shape.height)),
        width(static_cast<int>(shape.width)),
        window(static_cast<int>(of.window)),
        stride(static_cast<int>(of.stride)),
        padding(static_cast<int>(of.padding)),
        down(static_cast<int>(windows_along(shape.height, of))),
        across(static_cast<int>(windows_along(shape.width, of))) {
    by_height = Divisor(height);
    by_width = Divisor(width);
    by_down = Divisor(down);
    by_across = Divisor(across);
    by_stride = Divisor(stride);
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
  static constexpr int places_at_once = 3;  // whose numbers a thread reads before it compares them
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
  __device__ __forceinline__ static void choose(const NormOfColumns& column,
                                                const Octet<Number>& numbers, int place,
                                                bool is_first, float (&best)[octet],
                                                Octet<std::uint8_t>& chosen) {
#pragma unroll
    for (int i = 0; i < octet; ++i) {
      const float norm = column.normed(number_of(numbers, i), i);
      const float value = to_float(from_float<Number>(norm <= 0.0f ? 0.0f : norm));
      if (!is_first && !(value > best[i]) && value == value) continue;
      best[i] = value;
      chosen.values[i] = static_cast<std::uint8_t>(place);
    }
  }
  template <bool whole>
  __device__ void finish(const Spot& spot, const NormOfColumns& column, const Nothing&,
                         ColumnSums&) const {
    const int output = static_cast<int>(spot.row);
    const int row = windows.by_across.quotient(output), image = windows.by_down.quotient(row);
    const int top = windows.by_down.rest(row, image) * windows.stride - windows.padding;
    const int left = windows.by_across.rest(output, row) * windows.stride - windows.padding;
    float best[octet] = {};
    Octet<std::uint8_t> chosen{};
    bool is_first = true;
    for (int down = 0; down < windows.window; ++down) {
      const int h = top + down;
      if (h < 0 || h >= windows.height) continue;
      const std::int64_t pixels = std::int64_t{image * windows.height + h} * windows.width;
      for (int first = 0; first < windows.window; first += places_at_once) {
        Octet<Number> numbers[places_at_once];
        bool exists[places_at_once];
#pragma unroll
        for (int i = 0; i < places_at_once; ++i) {
          const int w = left + first + i;
          exists[i] = first + i < windows.window && w >= 0 && w < windows.width;
          if (exists[i])
            numbers[i] = load_octet<whole>(x, (pixels + w) * columns + spot.column, spot.count);
        }
#pragma unroll
        for (int i = 0; i < places_at_once; ++i) {
          if (!exists[i]) continue;
          choose(column, numbers[i], down * windows.window + first + i, is_first, best, chosen);
          is_first = false;
        }
      }
    }
    store_octet<whole>(y, spot.index, spot.count, packed<Number>(best));
    store_octet<whole>(which, spot.index, spot.count, chosen);
  }
};

// d of a place before the relu: the sum of d_y over the windows that chose it. overlap_once: no
// place is in more than two windows along a side.
template <class Number, bool overlap_once>
struct PooledGradient {
  using Stored = Number;
  static constexpr bool has_relu = true;
  static constexpr int rows_at_once = 1;  // of four windows
  Windows windows;
  const Number* d_y;
  const std::uint8_t* which;
  std::int64_t columns;

  struct Inputs {
    float d[octet];
  };
  // A place, counted from the padding's edge, and the last windows that have it.
  struct Place {
    int image, bottom, right, last_p, last_q;
  };
  // The first window along a side that has the place.
  __device__ int first_with(int place) const {
    return place < windows.window ? 0 : windows.by_stride.quotient(place - windows.window) + 1;
  }
  // Adds the gradients of two windows and of the two below them, as far as they exist.
  template <bool whole>
  __device__ __forceinline__ void add_four(const Spot& spot, const Place& at, int first_p,
                                           int first_q, Inputs& sums) const {
    Octet<std::uint8_t> chosen[4];
    Octet<Number> numbers[4];
    int place[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int p = first_p + i / 2, q = first_q + i % 2;
      const bool exists = p <= at.last_p && q <= at.last_q;
      constexpr int no_place = -1;
      place[i] =
          exists ? (at.bottom - p * windows.stride) * windows.window + at.right - q * windows.stride
                 : no_place;
      const std::int64_t output =
          std::int64_t{at.image * windows.down + min(p, at.last_p)} * windows.across +
          min(q, at.last_q);
      const std::int64_t index = output * columns + spot.column;
      chosen[i] = load_octet<whole>(which, index, spot.count);
      numbers[i] = load_octet<whole>(d_y, index, spot.count);
    }
#pragma unroll
    for (int i = 0; i < 4; ++i) {
#pragma unroll
      for (int c = 0; c < octet; ++c)
        sums.d[c] += chosen[i].values[c] == place[i] ? number_of(numbers[i], c) : 0.0f;
    }
  }
  template <bool whole>
  __device__ Inputs read(const Spot& spot) const {
    const int pixel = static_cast<int>(spot.row);
    const int row = windows.by_width.quotient(pixel), image = windows.by_height.quotient(row);
    Place at{.image = image,
             .bottom = windows.by_height.rest(row, image) + windows.padding,
             .right = windows.by_width.rest(pixel, row) + windows.padding};
    at.last_p = min(windows.by_stride.quotient(at.bottom), windows.down - 1);
    at.last_q = min(windows.by_stride.quotient(at.right), windows.across - 1);
    const int first_p = first_with(at.bottom), first_q = first_with(at.right);
    Inputs sums{};
    if constexpr (overlap_once) {
      add_four<whole>(spot, at, first_p, first_q, sums);
    } else {
      for (int p = first_p; p <= at.last_p; p += 2) {
        for (int q = first_q; q <= at.last_q; q += 2) add_four<whole>(spot, at, p, q, sums);
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

// Calls `with` with an empty source of the storage's and the windows' type.
template <class Function>
Launch with_source(const Windows& windows, DType dtype, Function with) {
  return with_storage(dtype, [&](auto zero) -> Launch {
    using Number = decltype(zero);
    if (windows.overlap_once()) return with(PooledGradient<Number, true>{});
    return with(PooledGradient<Number, false>{});
  });
}

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

constexpr int sum_threads = 256, sum_lanes = 4;  // neighbouring threads of a row
constexpr int sum_lines = sum_threads / sum_lanes, sum_columns = sum_lanes * octet;

// A block sums all pixels of 32 columns of an image: a thread's pixels, then the lines in their
// order.
template <bool whole, class Number>
__global__ void __launch_bounds__(sum_threads)
    sum_pixels(const Number* x, Number* y, std::int64_t pixels, std::int64_t columns) {
  __shared__ float of_lines[sum_lines][sum_columns];
  const int line = threadIdx.x / sum_lanes, first = threadIdx.x % sum_lanes * octet;
  const std::int64_t tile = static_cast<std::int64_t>(blockIdx.y) * sum_columns;
  const std::int64_t column = tile + first, rest = columns - column;
  const Number* image = x + blockIdx.x * pixels * columns;
  float sums[octet] = {};
  if (rest > 0) {
#pragma unroll 4
    for (std::int64_t pixel = line; pixel < pixels; pixel += sum_lines) {
      const auto numbers = load_octet<whole>(image, pixel * columns + column,
                                             rest > octet ? octet : static_cast<int>(rest));
#pragma unroll
      for (int i = 0; i < octet; ++i) sums[i] += number_of(numbers, i);
    }
  }
#pragma unroll
  for (int i = 0; i < octet; ++i) of_lines[line][first + i] = sums[i];
  __syncthreads();
  if (threadIdx.x >= sum_columns || tile + threadIdx.x >= columns) return;
  float sum = 0.0f;
  for (int other = 0; other < sum_lines; ++other) sum += of_lines[other][threadIdx.x];
  y[blockIdx.x * columns + tile + threadIdx.x] = from_float<Number>(sum);
}

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
  return with_source(windows, dtype, [&](auto empty) -> Launch {
    using Source = decltype(empty);
    using Number = typename Source::Stored;
    return [=](void* const* buffers, cudaStream_t stream) {
      const Source source{windows, static_cast<const Number*>(buffers[0]),
                          static_cast<const std::uint8_t*>(buffers[1]), shape.columns};
      const GradientSumsOnDevice<Number, Source> element{
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
  return with_source(windows, dtype, [&](auto empty) -> Launch {
    using Source = decltype(empty);
    using Number = typename Source::Stored;
    return [=](void* const* buffers, cudaStream_t stream) {
      const Source source{windows, static_cast<const Number*>(buffers[0]),
                          static_cast<const std::uint8_t*>(buffers[1]), shape.columns};
      const GradientApplyOnDevice<Number, Source> element{source,
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

Launch kernels::SumPixels::prepare(const Shape& shape, DType dtype, const Attributes&,
                                   const LaunchContext&) {
  const dim3 grid(static_cast<unsigned>(shape.images),
                  static_cast<unsigned>(ceiling_quotient(shape.columns, sum_columns)));
  return with_storage(dtype, [&](auto zero) -> Launch {
    using Number = decltype(zero);
    return [=](void* const* buffers, cudaStream_t stream) {
      const bool whole = shape.columns % octet == 0 && aligned_to_access(buffers[0]);
      auto* const kernel = whole ? sum_pixels<true, Number> : sum_pixels<false, Number>;
      kernel<<<grid, sum_threads, 0, stream>>>(static_cast<const Number*>(buffers[0]),
                                               static_cast<Number*>(buffers[1]), shape.pixels,
                                               shape.columns);
      check_launch(name);
    };
  });
}

}  // namespace stepgate
