// SPDX-License-Identifier: MIT
// CUDA kernel and launcher of changes of layout; layout.h has their meaning and shape. A block
// reads a square of an image along its rows and writes it along its columns, so that neighbouring
// threads access neighbouring memory on either side.
#include "kernels/layout/layout.h"

#include "kernels/launch.cuh"

namespace stepgate {
namespace {

constexpr int square_side = 64;
constexpr int square_threads = 256;
// Rows of 65 words: threads that read down a column find them in different banks.
constexpr int square_pitch = square_side + 1;
constexpr int square_words = square_side * square_pitch;

// The square of a block: its first row and column, the sizes of its image, and the image's first
// word.
struct Square {
  std::int64_t row, column, rows, columns, first;
};

// Reads the square in packs of `count` words of x, which divides the number of columns.
template <int count, class Word>
__device__ __forceinline__ void read_square(const Square& at, const Word* x, Word* square,
                                            int thread) {
  constexpr int packs_of_row = square_side / count, rows_at_once = square_threads / packs_of_row;
  constexpr int packs = square_side / rows_at_once;
  const int column = thread % packs_of_row * count, row = thread / packs_of_row;
  Pack<Word, count> read[packs];
#pragma unroll
  for (int i = 0; i < packs; ++i) {
    const std::int64_t down = at.row + row + i * rows_at_once;
    if (down < at.rows && at.column + column < at.columns)
      read[i] = load<count>(x, at.first + down * at.columns + at.column + column);
  }
#pragma unroll
  for (int i = 0; i < packs; ++i) {
#pragma unroll
    for (int word = 0; word < count; ++word)
      square[(row + i * rows_at_once) * square_pitch + column + word] = read[i].values[word];
  }
}

// Writes it in packs of `count` words of y, which divides the number of rows.
template <int count, class Word>
__device__ __forceinline__ void write_square(const Square& at, const Word* square, Word* y,
                                             int thread) {
  constexpr int packs_of_column = square_side / count;
  constexpr int columns_at_once = square_threads / packs_of_column;
  const int row = thread % packs_of_column * count;
#pragma unroll
  for (int column = thread / packs_of_column; column < square_side; column += columns_at_once) {
    if (at.row + row >= at.rows || at.column + column >= at.columns) continue;
    Pack<Word, count> written;
#pragma unroll
    for (int word = 0; word < count; ++word)
      written.values[word] = square[(row + word) * square_pitch + column];
    store<count>(y, at.first + (at.column + column) * at.rows + at.row + row, written);
  }
}

// Calls `with` with the number of words of a pack as a compile-time constant.
template <class Word, class Function>
__device__ __forceinline__ void with_words(int words, Function with) {
  constexpr int most = access_bytes / sizeof(Word);
  if (words == most) {
    with(std::integral_constant<int, most>{});
  } else if (words == most / 2) {
    with(std::integral_constant<int, most / 2>{});
  } else if (words == most / 4) {
    with(std::integral_constant<int, most / 4>{});
  } else {
    with(std::integral_constant<int, 1>{});
  }
}

__device__ __forceinline__ Square square_of(std::int64_t block, std::int64_t rows,
                                            std::int64_t columns) {
  const std::int64_t across = (columns + square_side - 1) / square_side;
  const std::int64_t down = (rows + square_side - 1) / square_side;
  const std::int64_t image = block / (down * across), in_image = block % (down * across);
  return {in_image / across * square_side, in_image % across * square_side, rows, columns,
          image * rows * columns};
}

template <class Word>
__global__ void __launch_bounds__(square_threads)
    change_layout(const Word* x, Word* y, std::int64_t rows, std::int64_t columns, int words_of_x,
                  int words_of_y) {
  __shared__ Word square[square_words];
  const Square at = square_of(blockIdx.x, rows, columns);
  const int thread = static_cast<int>(threadIdx.x);
  with_words<Word>(words_of_x,
                   [&](auto count) { read_square<count.value>(at, x, square, thread); });
  __syncthreads();
  with_words<Word>(words_of_y,
                   [&](auto count) { write_square<count.value>(at, square, y, thread); });
}

// The words of the widest access that divides both the address and a row of so many words.
template <class Word>
int words_of_access(const void* address, std::int64_t row) {
  const auto bytes = reinterpret_cast<std::uintptr_t>(address) |
                     static_cast<std::uintptr_t>(row) * sizeof(Word) | access_bytes;
  return static_cast<int>((bytes & ~(bytes - 1)) / sizeof(Word));
}

template <class Word>
Launch prepare_change(const kernels::ChangeLayout::Shape& shape) {
  return [shape](void* const* buffers, cudaStream_t stream) {
    const auto [images, rows, columns] = shape;
    const auto blocks = static_cast<unsigned>(images * ceiling_quotient(rows, square_side) *
                                              ceiling_quotient(columns, square_side));
    if (blocks == 0) return;
    change_layout<Word><<<blocks, square_threads, 0, stream>>>(
        static_cast<const Word*>(buffers[0]), static_cast<Word*>(buffers[1]), rows, columns,
        words_of_access<Word>(buffers[0], columns), words_of_access<Word>(buffers[1], rows));
    check_launch(kernels::ChangeLayout::name);
  };
}

}  // namespace

Launch kernels::ChangeLayout::prepare(const Shape& shape, DType dtype, const Attributes&,
                                      const LaunchContext&) {
  return is_16_bit(dtype) ? prepare_change<std::uint16_t>(shape)
                          : prepare_change<std::uint32_t>(shape);
}

}  // namespace stepgate
