// SPDX-License-Identifier: MIT
// CUDA kernels and launchers of upsampling; upsample.h has their meaning and shapes.
#include "kernels/upsample/upsample.h"

#include "kernels/walk_rows.cuh"

namespace stepgate {
namespace {

struct Nothing {};

// A row is a pixel of the small image; `square` counts the pixels of its square in the large one.
__device__ __forceinline__ std::int64_t pixel_of_square(std::int64_t row, std::int64_t width,
                                                        int square) {
  const std::int64_t down = row / width, across = row % width;
  return (2 * down + square / 2) * (2 * width) + 2 * across + square % 2;
}

template <class Number>
struct UpsampleOnDevice {
  static constexpr bool has_sums = false;
  static constexpr int rows_at_once = 4, rows_of_thread = 8;
  const Number* x;
  Number* y;
  std::int64_t width, columns;

  template <bool whole>
  __device__ Nothing constants(std::int64_t, int) const {
    return {};
  }
  template <bool whole>
  __device__ Octet<Number> read(const Spot& spot) const {
    return load_octet<whole>(x, spot.index, spot.count);
  }
  template <bool whole>
  __device__ void finish(const Spot& spot, const Nothing&, const Octet<Number>& row,
                         ColumnSums&) const {
#pragma unroll
    for (int square = 0; square < 4; ++square)
      store_octet<whole>(y, pixel_of_square(spot.row, width, square) * columns + spot.column,
                         spot.count, row);
  }
};

template <class Number>
struct UpsampleGradientOnDevice {
  static constexpr bool has_sums = false;
  static constexpr int rows_at_once = sizeof(Number) == 2 ? 2 : 1, rows_of_thread = 8;
  const Number* d_y;
  Number* d_x;
  std::int64_t width, columns;

  struct Inputs {
    Octet<Number> of[4];
  };
  template <bool whole>
  __device__ Nothing constants(std::int64_t, int) const {
    return {};
  }
  template <bool whole>
  __device__ Inputs read(const Spot& spot) const {
    Inputs inputs;
#pragma unroll
    for (int square = 0; square < 4; ++square)
      inputs.of[square] = load_octet<whole>(
          d_y, pixel_of_square(spot.row, width, square) * columns + spot.column, spot.count);
    return inputs;
  }
  template <bool whole>
  __device__ void finish(const Spot& spot, const Nothing&, const Inputs& inputs,
                         ColumnSums&) const {
    float sums[octet];
#pragma unroll
    for (int i = 0; i < octet; ++i)
      sums[i] = (number_of(inputs.of[0], i) + number_of(inputs.of[1], i)) +
                (number_of(inputs.of[2], i) + number_of(inputs.of[3], i));
    store_octet<whole>(d_x, spot.index, spot.count, packed<Number>(sums));
  }
};

template <template <class> class Element>
Launch prepare_walk(std::string_view name, const kernels::Upsample::Shape& shape, DType dtype) {
  return with_storage(dtype, [&](auto zero) -> Launch {
    using Number = decltype(zero);
    return [=](void* const* buffers, cudaStream_t stream) {
      const Element<Number> element{static_cast<const Number*>(buffers[0]),
                                    static_cast<Number*>(buffers[1]), shape.width, shape.columns};
      launch_walk(name, element, {shape.images * shape.height * shape.width, shape.columns},
                  aligned_to_access(buffers[0], buffers[1]), stream);
    };
  });
}

}  // namespace

Launch kernels::Upsample::prepare(const Shape& shape, DType dtype, const Attributes&,
                                  const LaunchContext&) {
  return prepare_walk<UpsampleOnDevice>(name, shape, dtype);
}

Launch kernels::UpsampleGradient::prepare(const Shape& shape, DType dtype, const Attributes&,
                                          const LaunchContext&) {
  return prepare_walk<UpsampleGradientOnDevice>(name, shape, dtype);
}

}  // namespace stepgate
