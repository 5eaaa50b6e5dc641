// SPDX-License-Identifier: MIT
// The one kernel behind batch norm, group norm, pooling and additions of a bias by sample: threads
// walk down the rows of a matrix, each with eight neighbouring columns, whose constants stay in
// registers. What is done with a row is an Element. Sums over rows have an order that depends on
// the shape alone.
#pragma once

#include "kernels/launch.cuh"
#include "kernels/packed_numbers.cuh"

namespace stepgate {

constexpr int octet = 8;  // a byte of a mask, and a pack of 16-bit numbers
constexpr int walk_threads = 256;
constexpr int most_lanes = 32;  // neighbouring threads of a row

template <class Number>
using Octet = Pack<Number, octet>;

// The columns of a thread in a row. `count` of them are in the matrix.
struct Spot {
  std::int64_t row, column, index;
  int count;
};

// Loads the numbers from `index` on. whole: all eight exist, and are aligned.
template <bool whole, class Number>
__device__ __forceinline__ Octet<Number> load_octet(const Number* from, std::int64_t index,
                                                    int count) {
  if constexpr (whole) {
    return load<octet>(from, index);
  } else {
    Octet<Number> numbers{};
#pragma unroll
    for (int i = 0; i < octet; ++i) {
      if (i < count) numbers.values[i] = from[index + i];
    }
    return numbers;
  }
}

template <bool whole, class Number>
__device__ __forceinline__ void store_octet(Number* to, std::int64_t index, int count,
                                            const Octet<Number>& numbers) {
  if constexpr (whole) {
    store<octet>(to, index, numbers);
  } else {
#pragma unroll
    for (int i = 0; i < octet; ++i) {
      if (i < count) to[index + i] = numbers.values[i];
    }
  }
}

// The two sums over rows of a thread's columns.
struct ColumnSums {
  float first[octet], second[octet];
};

// Adds the sums of the lines of a block, in their order, and writes them from partials[column of
// the block] on.
__device__ __forceinline__ void write_partials(float* partials, const float (&sums)[octet],
                                               float* of_lines, int lanes, std::int64_t columns) {
  const int span = lanes * octet;
  __syncthreads();
#pragma unroll
  for (int i = 0; i < octet; ++i) of_lines[threadIdx.x * octet + i] = sums[i];
  __syncthreads();
  const std::int64_t column = static_cast<std::int64_t>(blockIdx.y) * span + threadIdx.x;
  if (threadIdx.x >= span || column >= columns) return;
  float sum = 0.0f;
  for (int line = 0; line < walk_threads / lanes; ++line)
    sum += of_lines[line * span + threadIdx.x];
  partials[column] = sum;
}

// An Element has
//   constants<whole>(column, count)              of the columns of a thread
//   read<whole>(spot)                            the inputs of a row
//   finish<whole>(spot, constants, inputs, sums) writes outputs, and adds to the sums
//   rows_at_once                                 rows whose inputs a thread reads before it
//                                                finishes them
//   rows_of_thread                               of a matrix without parts, where it is large
//   has_sums                                     whether there are partials to write, [parts][2
//                                                columns]; block x then walks part x
//   of_sample(sample)                            the Element of a sample's matrix, where there are
//                                                samples of `rows` rows each
template <bool whole, class Element>
__global__ void __launch_bounds__(walk_threads, 2)
    walk_rows(const Element of_all, std::int64_t rows, std::int64_t columns, int lanes) {
  const auto element = [&] {
    if constexpr (requires { of_all.of_sample(0); })
      return of_all.of_sample(static_cast<std::int64_t>(blockIdx.z));
    else
      return of_all;
  }();
  const int line = threadIdx.x / lanes, lines = walk_threads / lanes;
  const std::int64_t column =
      (static_cast<std::int64_t>(blockIdx.y) * lanes + threadIdx.x % lanes) * octet;
  const std::int64_t blocks = gridDim.x, step = blocks * lines;
  ColumnSums sums{};
  if (column < columns) {
    const std::int64_t rest = columns - column;
    const int count = whole || rest > octet ? octet : static_cast<int>(rest);
    const auto constants = element.template constants<whole>(column, count);
    const std::int64_t first =
        Element::has_sums ? blockIdx.x + line * blocks : blockIdx.x * std::int64_t{lines} + line;
    for (std::int64_t row = first; row < rows; row += Element::rows_at_once * step) {
      decltype(element.template read<whole>(Spot{})) inputs[Element::rows_at_once];
      const auto spot = [&](int i) {
        const std::int64_t at = row + i * step;
        return Spot{at, column, at * columns + column, count};
      };
#pragma unroll
      for (int i = 0; i < Element::rows_at_once; ++i) {
        if (row + i * step < rows) inputs[i] = element.template read<whole>(spot(i));
      }
#pragma unroll
      for (int i = 0; i < Element::rows_at_once; ++i) {
        if (row + i * step < rows)
          element.template finish<whole>(spot(i), constants, inputs[i], sums);
      }
    }
  }
  if constexpr (Element::has_sums) {
    __shared__ float of_lines[walk_threads * octet];
    float* partials = element.partials + blockIdx.x * 2 * columns;
    write_partials(partials, sums.first, of_lines, lanes, columns);
    write_partials(partials + columns, sums.second, of_lines, lanes, columns);
  }
}

// Walks down a matrix, in parts where the Element has sums. `aligned`: every operand is. Without
// parts, threads get fewer rows where there would be less than two blocks for each of the 132
// multiprocessors of an H200. Each of several samples is a matrix of that shape.
template <class Element>
void launch_walk(std::string_view kernel, const Element& element, const PartsShape& shape,
                 bool aligned, cudaStream_t stream, std::int64_t samples = 1) {
  constexpr std::int64_t most_samples = 65'535;  // layers of a grid
  if (samples > most_samples)
    throw std::runtime_error(std::string(kernel) + ": more than " + std::to_string(most_samples) +
                             " samples; make the batch smaller");
  int lanes = 1;
  while (lanes < most_lanes && lanes * octet < shape.columns) lanes *= 2;
  const std::int64_t lines = walk_threads / lanes;
  const std::int64_t tiles = ceiling_quotient(shape.columns, lanes * octet);
  std::int64_t blocks = ceiling_quotient(shape.rows, lines * Element::rows_of_thread);
  if (blocks * tiles * samples < 2 * 132)
    blocks = ceiling_quotient(shape.rows, lines * Element::rows_at_once);
  if (Element::has_sums) blocks = shape.parts;
  const dim3 grid(static_cast<unsigned>(blocks), static_cast<unsigned>(tiles),
                  static_cast<unsigned>(samples));
  if (aligned && shape.columns % octet == 0) {
    walk_rows<true><<<grid, walk_threads, 0, stream>>>(element, shape.rows, shape.columns, lanes);
  } else {
    walk_rows<false><<<grid, walk_threads, 0, stream>>>(element, shape.rows, shape.columns, lanes);
  }
  check_launch(kernel);
}

}  // namespace stepgate
