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
  Divisor by_down, by_across;

  Windows(std::string_view kernel, const auto& shape, const WindowAttributes& of)
      : height(static_cast<int>(shape.height)),
        width(static_cast<int>(shape.width)),
        window(static_cast<int>(of.window)),
        stride(static_cast<int>(of.stride)),
        padding(static_cast<int>(of.padding)),
        down(static_cast<int>(windows_along(shape.height, of))),
        across(static_cast<int>(windows_along(shape.width, of))) {
    by_down = Divisor(down);
    by_across = Divisor(across);
    // There may be one window more than pixels along a side, and blocks in the padding.
    if (shape.images * (shape.height + 1 + of.padding) * (shape.width + 1 + of.padding) <=
        std::numeric_limits<int>::max())
      return;
    throw std::runtime_error(std::string(kernel) +
                             ": more than 2^31 - 1 pixels; make the batch smaller");
  }
  Windows() = default;
};

// A stored value above its place in the window, counted from the end: of two keys the larger one
// has the larger value, or the first of equals. A negative value makes a negative key, and a NaN
// the largest.
template <class Number>
struct WindowKey {
  using Bits = std::conditional_t<sizeof(Number) == 2, std::int16_t, std::int32_t>;
  using Word = std::conditional_t<sizeof(Number) == 2, std::int32_t, std::int64_t>;
  static constexpr int value_shift = 8 * sizeof(Number), last_place = 0xffff;
  Word word = 0;

  // The place is `down` rows and `across` pixels from the window's first.
  static __device__ __forceinline__ Word of_place(int down, int across) {
    return last_place - (down << 8 | across);
  }
  __device__ __forceinline__ void take_larger(const Number& value, Word of_place) {
    Bits bits;
    memcpy(&bits, &value, sizeof bits);
    const Word other = static_cast<Word>(bits) << value_shift | of_place;
    if (other > word) word = other;
  }
  __device__ __forceinline__ Number value() const {
    const auto bits = static_cast<Bits>(word >> value_shift);
    Number number;
    memcpy(&number, &bits, sizeof bits);
    return number;
  }
  __device__ __forceinline__ int place() const {
    return last_place - static_cast<int>(word & last_place);
  }
  __device__ __forceinline__ int down() const { return place() >> 8; }
  __device__ __forceinline__ int across() const { return place() & 0xff; }
};

// fixed: the window's side where the loops over it are unrolled, else 0.
template <class Number, int fixed>
struct NormPoolOnDevice {
  static constexpr bool has_sums = false;
  static constexpr int rows_at_once = 1, rows_of_thread = 4;
  static constexpr int places_at_once = 3;  // whose numbers a thread reads before it compares them
  Windows windows;
  const Number* x;
  const float* statistics;
  Number* y;
  std::uint8_t* which;
  Number* chosen;
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
  // Reads the nearest place of the image for one outside of it, which changes nothing.
  template <bool whole>
  __device__ void finish(const Spot& spot, const NormOfColumns& column, const Nothing&,
                         ColumnSums&) const {
    const int output = static_cast<int>(spot.row);
    const int row = windows.by_across.quotient(output), image = windows.by_down.quotient(row);
    const int top = windows.by_down.rest(row, image) * windows.stride - windows.padding;
    const int left = windows.by_across.rest(output, row) * windows.stride - windows.padding;
    const Number* const of_image =
        x + std::int64_t{image} * windows.height * windows.width * columns + spot.column;
    const auto index_of = [&](int h, int w) {
      return (std::int64_t{h} * windows.width + w) * columns;
    };
    WindowKey<Number> best[octet];
#pragma unroll
    for (int i = 0; i < octet; ++i)  // the relu: 0 at the first place
      best[i].word = WindowKey<Number>::of_place(max(-top, 0), max(-left, 0));
    const int window = fixed > 0 ? fixed : windows.window;
#pragma unroll
    for (int down = 0; down < window; ++down) {
      const int h = min(max(top + down, 0), windows.height - 1);
#pragma unroll
      for (int first = 0; first < window; first += places_at_once) {
        Octet<Number> numbers[places_at_once];
        int across[places_at_once];
#pragma unroll
        for (int i = 0; i < places_at_once; ++i) {
          const int w = min(max(left + min(first + i, window - 1), 0), windows.width - 1);
          across[i] = w - left;
          numbers[i] = load_octet<whole>(of_image, index_of(h, w), spot.count);
        }
#pragma unroll
        for (int i = 0; i < places_at_once; ++i) {
          float norms[octet];
#pragma unroll
          for (int c = 0; c < octet; ++c) norms[c] = column.normed(number_of(numbers[i], c), c);
          const auto stored = packed<Number>(norms);
          const auto of_place = WindowKey<Number>::of_place(h - top, across[i]);
#pragma unroll
          for (int c = 0; c < octet; ++c) best[c].take_larger(stored.values[c], of_place);
        }
      }
    }
    Octet<Number> values, inputs{};
    Octet<std::uint8_t> places;
#pragma unroll
    for (int i = 0; i < octet; ++i) {
      const WindowKey<Number>& key = best[i];
      values.values[i] = key.value();
      places.values[i] = static_cast<std::uint8_t>(key.down() * window + key.across());
      if (whole || i < spot.count)
        inputs.values[i] = of_image[index_of(top + key.down(), left + key.across()) + i];
    }
    store_octet<whole>(y, spot.index, spot.count, values);
    store_octet<whole>(which, spot.index, spot.count, places);
    store_octet<whole>(chosen, spot.index, spot.count, inputs);
  }
};

// d of a place before the relu: the sum of d_y over the windows that chose it.
template <class Number>
struct PooledGradient {
  static constexpr bool has_relu = true;
  static constexpr int rows_at_once = 1;  // a block of places
  struct Inputs {
    float d[octet];
  };
  template <bool whole>
  __device__ Inputs read(const Spot&) const;  // gives the type alone; nobody calls it
  __device__ float at(const Inputs& inputs, int i) const { return inputs.d[i]; }
};

// The numbers of a window whose choices a thread compares with its places.
template <class Number>
struct ReadWindow {
  Octet<std::uint8_t> which;
  Octet<Number> d_y;

  // Adds d_y where the window chose the place. Four columns are compared at once: the sign of a
  // byte of `signs` is set where another place was chosen.
  __device__ __forceinline__ void add_to(float (&sums)[octet], int place) const {
    constexpr std::uint32_t low_bits = 0x7f7f7f7f, each_byte = 0x01010101;
#pragma unroll
    for (int c = 0; c < octet; ++c) {
      const std::uint32_t differ = words_of(which)[c / 4] ^ (each_byte * place);
      const std::uint32_t signs = ((differ & low_bits) + low_bits) | differ;
      std::uint32_t others;  // all bits or none: copies of the sign of byte c % 4
      asm("prmt.b32 %0, %1, 0, %2;" : "=r"(others) : "r"(signs), "r"(0x8888 + 0x1111 * (c % 4)));
      sums[c] += __uint_as_float(__float_as_uint(number_of(d_y, c)) & ~others);
    }
  }
};

// Walks blocks of stride x stride places, counted from the padding's edge, instead of rows, and
// hands each place to the gradient of the norm. A thread reads a window once for all places of a
// block.
template <class Number, bool three_by_two>
struct NormPoolGradientOnDevice {
  using Element = GradientApplyOnDevice<Number, PooledGradient<Number>>;
  static constexpr bool has_sums = false;
  static constexpr int rows_at_once = Element::rows_at_once, rows_of_thread = 4;
  Element element;
  Windows windows;
  Divisor by_blocks_down, by_blocks_across;
  const Number* d_y;
  const std::uint8_t* which;
  std::int64_t columns;

  struct Nothing {};
  // A block among those of its image, its first place, and where the numbers of that place and of
  // the window that begins there lie.
  struct Block {
    int down, across, h, w;
    std::int64_t place, window;
  };
  template <bool whole>
  __device__ auto constants(std::int64_t column, int count) const {
    return element.template constants<whole>(column, count);
  }
  template <bool whole>
  __device__ Nothing read(const Spot&) const {
    return {};
  }
  __device__ __forceinline__ int stride() const { return three_by_two ? 2 : windows.stride; }
  __device__ __forceinline__ Block block_at(const Spot& spot) const {
    const int index = static_cast<int>(spot.row);
    const int row = by_blocks_across.quotient(index), image = by_blocks_down.quotient(row);
    Block block{.down = by_blocks_down.rest(row, image),
                .across = by_blocks_across.rest(index, row)};
    block.h = block.down * stride() - windows.padding;
    block.w = block.across * stride() - windows.padding;
    const std::int64_t pixel =
        std::int64_t{image * windows.height + block.h} * windows.width + block.w;
    const std::int64_t output =
        std::int64_t{image * windows.down + block.down} * windows.across + block.across;
    block.place = pixel * columns + spot.column;
    block.window = output * columns + spot.column;
    return block;
  }
  // The window that begins so many blocks before this one.
  template <bool whole>
  __device__ __forceinline__ ReadWindow<Number> window_before(const Spot& spot, const Block& block,
                                                              int down, int across) const {
    const std::int64_t index = block.window - (down * windows.across + across) * columns;
    return {load_octet<whole>(which, index, spot.count), load_octet<whole>(d_y, index, spot.count)};
  }
  __device__ __forceinline__ bool has_window(const Block& block, int down, int across) const {
    const int p = block.down - down, q = block.across - across;
    return p >= 0 && p < windows.down && q >= 0 && q < windows.across;
  }
  __device__ __forceinline__ bool has_place(const Block& block, int t, int u) const {
    const int h = block.h + t, w = block.w + u;
    return h >= 0 && h < windows.height && w >= 0 && w < windows.width;
  }
  // Where the numbers of a place lie is all that the norm's gradient asks of a spot.
  __device__ __forceinline__ Spot place_at(const Spot& spot, const Block& block, int t,
                                           int u) const {
    const std::int64_t index = block.place + (t * windows.width + u) * columns;
    return {.column = spot.column, .index = index, .count = spot.count};
  }

  template <bool whole>
  __device__ void finish(const Spot& spot, const auto& column, const Nothing&,
                         ColumnSums& sums) const {
    const Block block = block_at(spot);
    if constexpr (three_by_two) {
      finish_four<whole>(spot, block, column, sums);
    } else {
      for (int t = 0; t < stride(); ++t)
        for (int u = 0; u < stride(); ++u) finish_place<whole>(spot, block, t, u, column, sums);
    }
  }
  // Windows of 3 x 3 places with stride 2: those that begin in a block have all four places of it,
  // and those that begin in the blocks before have one row, one column or one place.
  template <bool whole>
  __device__ __forceinline__ void finish_four(const Spot& spot, const Block& block,
                                              const auto& column, ColumnSums& sums) const {
    constexpr std::uint8_t no_place = 0xff;
    ReadWindow<Number> read[2][2];  // of the blocks before, and of this one
    Octet<Number> x[2][2];
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int t = i / 2, u = i % 2;
      if (has_window(block, 1 - t, 1 - u)) {
        read[t][u] = window_before<whole>(spot, block, 1 - t, 1 - u);
      } else {
        read[t][u] = {};
#pragma unroll
        for (int c = 0; c < octet; ++c) read[t][u].which.values[c] = no_place;
      }
      if (has_place(block, t, u))
        x[t][u] = load_octet<whole>(element.x, place_at(spot, block, t, u).index, spot.count);
    }
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int t = i / 2, u = i % 2;
      if (!has_place(block, t, u)) continue;
      typename PooledGradient<Number>::Inputs of_windows{};
      if (t == 0 && u == 0) read[0][0].add_to(of_windows.d, 8);
      if (t == 0) read[0][1].add_to(of_windows.d, 6 + u);
      if (u == 0) read[1][0].add_to(of_windows.d, 3 * t + 2);
      read[1][1].add_to(of_windows.d, 3 * t + u);
      element.template finish<whole>(place_at(spot, block, t, u), column, {x[t][u], of_windows},
                                     sums);
    }
  }
  template <bool whole>
  __device__ void finish_place(const Spot& spot, const Block& block, int t, int u,
                               const auto& column, ColumnSums& sums) const {
    if (!has_place(block, t, u)) return;
    typename PooledGradient<Number>::Inputs of_windows{};
    for (int p = 0, down = t; down < windows.window; ++p, down += windows.stride) {
      for (int q = 0, across = u; across < windows.window; ++q, across += windows.stride) {
        if (has_window(block, p, q))
          window_before<whole>(spot, block, p, q)
              .add_to(of_windows.d, down * windows.window + across);
      }
    }
    const Spot place = place_at(spot, block, t, u);
    const auto x = load_octet<whole>(element.x, place.index, place.count);
    element.template finish<whole>(place, column, {x, of_windows}, sums);
  }
};

template <class Number>
struct MaxPoolOnDevice {
  static constexpr bool has_sums = false;
  static constexpr int rows_at_once = 1, rows_of_thread = 4;
  Windows windows;
  const Number* x;
  Number* y;
  std::uint8_t* which;
  std::int64_t columns;

  struct Nothing {};
  template <bool whole>
  __device__ Nothing constants(std::int64_t, int) const {
    return {};
  }
  template <bool whole>
  __device__ Nothing read(const Spot&) const {
    return {};
  }
  // The first place wins unless a later one is larger, or the first NaN.
  template <bool whole>
  __device__ void finish(const Spot& spot, const Nothing&, const Nothing&, ColumnSums&) const {
    const int output = static_cast<int>(spot.row);
    const int row = windows.by_across.quotient(output), image = windows.by_down.quotient(row);
    const int top = windows.by_down.rest(row, image) * windows.stride - windows.padding;
    const int left = windows.by_across.rest(output, row) * windows.stride - windows.padding;
    float best[octet] = {};
    Octet<std::uint8_t> places{};
    bool is_first = true;
    for (int down = 0; down < windows.window; ++down) {
      const int h = top + down;
      if (h < 0 || h >= windows.height) continue;
      for (int across = 0; across < windows.window; ++across) {
        const int w = left + across;
        if (w < 0 || w >= windows.width) continue;
        const std::int64_t pixel = (std::int64_t{image} * windows.height + h) * windows.width + w;
        const auto numbers = load_octet<whole>(x, pixel * columns + spot.column, spot.count);
#pragma unroll
        for (int i = 0; i < octet; ++i) {
          const float value = number_of(numbers, i);
          const bool is_first_nan = value != value && best[i] == best[i];
          if (!is_first && !(value > best[i]) && !is_first_nan) continue;
          best[i] = value;
          places.values[i] = static_cast<std::uint8_t>(down * windows.window + across);
        }
        is_first = false;
      }
    }
    store_octet<whole>(y, spot.index, spot.count, packed<Number>(best));
    store_octet<whole>(which, spot.index, spot.count, places);
  }
};

// Walks the places of the images, each of which reads the windows that it is in.
template <class Number>
struct MaxPoolGradientOnDevice {
  static constexpr bool has_sums = false;
  static constexpr int rows_at_once = 1, rows_of_thread = 4;
  Windows windows;
  Divisor by_height, by_width;
  const Number* d_y;
  const std::uint8_t* which;
  Number* d_x;
  std::int64_t columns;

  struct Nothing {};
  template <bool whole>
  __device__ Nothing constants(std::int64_t, int) const {
    return {};
  }
  template <bool whole>
  __device__ Nothing read(const Spot&) const {
    return {};
  }
  // The first window along a side that has the place, which is counted from the padding's edge.
  __device__ __forceinline__ int first_window(int place) const {
    return place < windows.window ? 0 : (place - windows.window) / windows.stride + 1;
  }
  template <bool whole>
  __device__ void finish(const Spot& spot, const Nothing&, const Nothing&, ColumnSums&) const {
    const int pixel = static_cast<int>(spot.row);
    const int row = by_width.quotient(pixel), image = by_height.quotient(row);
    const int h = by_height.rest(row, image) + windows.padding;
    const int w = by_width.rest(pixel, row) + windows.padding;
    const int last_p = min(h / windows.stride, windows.down - 1);
    const int last_q = min(w / windows.stride, windows.across - 1);
    float sums[octet] = {};
    for (int p = first_window(h); p <= last_p; ++p) {
      for (int q = first_window(w); q <= last_q; ++q) {
        const std::int64_t output = (std::int64_t{image} * windows.down + p) * windows.across + q;
        const std::int64_t index = output * columns + spot.column;
        const ReadWindow<Number> read{load_octet<whole>(which, index, spot.count),
                                      load_octet<whole>(d_y, index, spot.count)};
        const int down = h - p * windows.stride, across = w - q * windows.stride;
        read.add_to(sums, down * windows.window + across);
      }
    }
    store_octet<whole>(d_x, spot.index, spot.count, packed<Number>(sums));
  }
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
      const auto walk = [&](auto fixed) {
        const NormPoolOnDevice<Number, fixed.value> element{windows,
                                                            static_cast<const Number*>(buffers[0]),
                                                            static_cast<const float*>(buffers[1]),
                                                            static_cast<Number*>(buffers[2]),
                                                            static_cast<std::uint8_t*>(buffers[3]),
                                                            static_cast<Number*>(buffers[4]),
                                                            shape.columns};
        launch_walk(name, element, {shape.images * windows.down * windows.across, shape.columns},
                    aligned_to_access(element.x, element.statistics, element.y, element.which,
                                      element.chosen),
                    stream);
      };
      if (windows.window == 3) {
        walk(std::integral_constant<int, 3>{});
      } else {
        walk(std::integral_constant<int, 0>{});
      }
    };
  });
}

Launch kernels::NormPoolGradient::prepare(const Shape& shape, DType dtype,
                                          const Attributes& attributes, const LaunchContext&) {
  const Windows windows(name, shape, attributes);
  const auto blocks_of = [&](std::int64_t side) {
    return static_cast<int>((side - 1 + attributes.padding) / attributes.stride + 1);
  };
  const int down = blocks_of(shape.height), across = blocks_of(shape.width);
  const bool three_by_two = attributes.window == 3 && attributes.stride == 2;
  return with_storage(dtype, [&](auto zero) -> Launch {
    using Number = decltype(zero);
    return [=](void* const* buffers, cudaStream_t stream) {
      const auto walk = [&](auto is_three_by_two) {
        const NormPoolGradientOnDevice<Number, is_three_by_two.value> blocks{
            {{},
             static_cast<const Number*>(buffers[2]),
             static_cast<const float*>(buffers[3]),
             static_cast<const float*>(buffers[4]),
             static_cast<Number*>(buffers[5]),
             shape.columns},
            windows,
            Divisor(down),
            Divisor(across),
            static_cast<const Number*>(buffers[0]),
            static_cast<const std::uint8_t*>(buffers[1]),
            shape.columns};
        const auto& element = blocks.element;
        launch_walk(name, blocks, {shape.images * down * across, shape.columns},
                    aligned_to_access(element.x, element.statistics, element.means, element.d_x,
                                      blocks.d_y, blocks.which),
                    stream);
      };
      if (three_by_two) {
        walk(std::true_type{});
      } else {
        walk(std::false_type{});
      }
    };
  });
}

Launch kernels::MaxPool::prepare(const Shape& shape, DType dtype, const Attributes& attributes,
                                 const LaunchContext&) {
  const Windows windows(name, shape, attributes);
  return with_storage(dtype, [&](auto zero) -> Launch {
    using Number = decltype(zero);
    return [=](void* const* buffers, cudaStream_t stream) {
      const MaxPoolOnDevice<Number> element{windows, static_cast<const Number*>(buffers[0]),
                                            static_cast<Number*>(buffers[1]),
                                            static_cast<std::uint8_t*>(buffers[2]), shape.columns};
      launch_walk(name, element, {shape.images * windows.down * windows.across, shape.columns},
                  aligned_to_access(element.x, element.y, element.which), stream);
    };
  });
}

Launch kernels::MaxPoolGradient::prepare(const Shape& shape, DType dtype,
                                         const Attributes& attributes, const LaunchContext&) {
  const Windows windows(name, shape, attributes);
  return with_storage(dtype, [&](auto zero) -> Launch {
    using Number = decltype(zero);
    return [=](void* const* buffers, cudaStream_t stream) {
      const MaxPoolGradientOnDevice<Number> element{windows,
                                                    Divisor(windows.height),
                                                    Divisor(windows.width),
                                                    static_cast<const Number*>(buffers[0]),
                                                    static_cast<const std::uint8_t*>(buffers[1]),
                                                    static_cast<Number*>(buffers[2]),
                                                    shape.columns};
      launch_walk(name, element, {shape.images * shape.height * shape.width, shape.columns},
                  aligned_to_access(element.d_y, element.which, element.d_x), stream);
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
