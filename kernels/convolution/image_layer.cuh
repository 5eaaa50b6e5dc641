// SPDX-License-Identifier: MIT
// The first convolution of a ResNet, which is of images with three channels, and its weight
// gradient, on tensor cores. Libraries need channels in packs of 16 bytes; here the numbers of a
// window's row, which lie side by side in memory, are the depth of the product instead.
#pragma once

#include <cstdint>

#include "kernels/launch.cuh"
#include "kernels/tensor_cores.cuh"

namespace stepgate {

constexpr int image_window = 7, image_channels = 3, image_stride = 2;
constexpr int image_outputs = 64;  // of a block
// Numbers of a window's row, and the packs of eight that hold them with up to three others, whose
// weights are zeros.
constexpr int row_taps = image_window * image_channels;
constexpr int row_octets = 3;
constexpr int window_taps = image_window * row_taps;
constexpr int image_steps = (image_window * row_octets + 1) / 2;  // of 16 numbers
constexpr int image_warps = image_window;  // each has a row of the window in the weight gradient
constexpr int image_threads = 32 * image_warps;
constexpr int pixels_at_once = 32;  // output pixels of a warp
constexpr int image_margin = 16;    // numbers before a row of the image in shared memory

// A strip is some output rows of an image. Its input rows lie in shared memory with zeros around
// them.
struct ImageStrips {
  int height, width, padding, output_height, output_width, outputs;
  int rows;    // output rows of a strip; the last one of an image may have fewer
  int strips;  // of an image
  int count;   // of all images
  int pitch;   // numbers of a row in shared memory

  // The margin before the window of output column 0 is made even by one number.
  __host__ __device__ int shift() const { return image_channels * padding % 2; }
  __host__ __device__ int first_window() const {
    return image_margin - image_channels * padding - shift();
  }
  __host__ __device__ int input_rows() const { return (rows - 1) * image_stride + image_window; }
  __host__ __device__ int row_bytes() const { return pitch * 2; }
  __host__ __device__ int pixels() const { return rows * output_width; }
  // In bytes from the strip's first row.
  __device__ int window_of(int pixel) const {
    const int row = pixel / output_width, column = pixel % output_width;
    return row * image_stride * row_bytes() +
           2 * (first_window() + column * image_stride * image_channels);
  }
};

// The place of a strip.
struct ImageStrip {
  std::int64_t image;
  int first_row;        // of the output
  int pixels;           // of the output
  std::int64_t output;  // its first pixel among those of all images

  __device__ ImageStrip(const ImageStrips& s, int index)
      : image(index / s.strips),
        first_row(index % s.strips * s.rows),
        pixels(min(s.rows, s.output_height - first_row) * s.output_width),
        output((image * s.output_height + first_row) * s.output_width) {}
};

// Starts to copy the input rows of a strip.
template <class Number>
__device__ __forceinline__ void copy_image_rows(const ImageStrips& s, const ImageStrip& strip,
                                                const Number* x, SharedAddress to) {
  const int chunks = s.pitch / 8, used = s.width * image_channels / 8;
  const int first = strip.first_row * image_stride - s.padding;
  for (int i = threadIdx.x; i < s.input_rows() * chunks; i += image_threads) {
    const int row = first + i / chunks, chunk = i % chunks - image_margin / 8;
    const bool exists = row >= 0 && row < s.height && chunk >= 0 && chunk < used;
    const Number* from = x + (strip.image * s.height + row) * s.width * image_channels + chunk * 8;
    copy_16_async(to + i * 16, exists ? from : x, exists);
  }
}

// The bytes from a window's start to its pack `octet`. Beyond the last pack weights are zeros.
__device__ __forceinline__ int octet_offset(const ImageStrips& s, int octet) {
  if (octet == image_window * row_octets) return 0;
  return octet / row_octets * s.row_bytes() + octet % row_octets * 16;
}

__device__ __forceinline__ std::uint32_t load_shared_word(SharedAddress from) {
  std::uint32_t word;
  asm volatile("ld.shared.b32 %0, [%1];\n" : "=r"(word) : "r"(from));
  return word;
}

// The output of column `column` of tile `tile` of a product. A lane then has eight neighbouring
// outputs in tiles 0 to 3, and eight in tiles 4 to 7.
__device__ __forceinline__ int output_of(int tile, int column) {
  return tile / 4 * 32 + column / 2 * 8 + tile % 4 * 2 + column % 2;
}

// The weights as right factors, [step][pair of tiles][lane], each with the low and the high rows of
// two tiles.
template <class Number>
__device__ void store_weights(const ImageStrips& s, const Number* weight, uint4* to) {
  const auto pair_of = [&](int output, int tap) {
    Number numbers[2];
    for (int i = 0; i < 2; ++i) {
      const int row = tap / (8 * row_octets), at = tap % (8 * row_octets) + i - s.shift();
      const bool is_weight = row < image_window && at >= 0 && at < row_taps;
      numbers[i] =
          is_weight ? weight[output * window_taps + row * row_taps + at] : from_float<Number>(0.0f);
    }
    std::uint32_t pair;
    memcpy(&pair, numbers, sizeof pair);
    return pair;
  };
  for (int i = threadIdx.x; i < image_steps * 4 * 32; i += image_threads) {
    const int lane = i % 32, tile = i / 32 % 4 * 2, tap = i / 128 * 16 + lane % 4 * 2;
    const int even = output_of(tile, lane / 4), odd = output_of(tile + 1, lane / 4);
    to[i] = {pair_of(even, tap), pair_of(even, tap + 8), pair_of(odd, tap), pair_of(odd, tap + 8)};
  }
}

constexpr int image_weight_bytes = image_steps * 4 * 32 * 16;

// Block x takes every gridDim.x-th strip; block y computes 64 of the outputs.
template <class Number>
__global__ void __launch_bounds__(image_threads, 2)
    convolve_images(const ImageStrips s, const Number* x, const Number* weight, Number* y) {
  const SharedAddress weights = shared_memory(), rows = weights + image_weight_bytes;
  extern __shared__ uint4 block_memory[];
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  weight += blockIdx.y * image_outputs * window_taps;
  y += blockIdx.y * image_outputs;
  store_weights(s, weight, block_memory);
  for (int index = blockIdx.x; index < s.count; index += gridDim.x) {
    const ImageStrip strip(s, index);
    __syncthreads();  // all warps have read the rows of the strip before
    copy_image_rows(s, strip, x, rows);
    wait_for_copies();
    __syncthreads();
    for (int first = warp * pixels_at_once; first < strip.pixels;
         first += image_warps * pixels_at_once) {
      SharedAddress windows[4];  // of rows lane / 4 of the four blocks of eight pixels
#pragma unroll
      for (int block = 0; block < 4; ++block) {
        const int pixel = min(first + block * 8 + lane / 4, strip.pixels - 1);
        windows[block] = rows + s.window_of(pixel) + lane % 4 * 4;
      }
      float sums[2][8][4] = {};
#pragma unroll
      for (int step = 0; step < image_steps; ++step) {
        const int low = octet_offset(s, 2 * step), high = octet_offset(s, 2 * step + 1);
        Blocks a[2];
#pragma unroll
        for (int half = 0; half < 2; ++half) {
          a[half] = {load_shared_word(windows[2 * half] + low),
                     load_shared_word(windows[2 * half + 1] + low),
                     load_shared_word(windows[2 * half] + high),
                     load_shared_word(windows[2 * half + 1] + high)};
        }
#pragma unroll
        for (int pair = 0; pair < 4; ++pair) {
          const uint4 b = load_shared_16(weights + ((step * 4 + pair) * 32 + lane) * 16);
#pragma unroll
          for (int half = 0; half < 2; ++half) {
            multiply_blocks<Number>(sums[half][2 * pair], a[half], b.x, b.y);
            multiply_blocks<Number>(sums[half][2 * pair + 1], a[half], b.z, b.w);
          }
        }
      }
#pragma unroll
      for (int block = 0; block < 4; ++block) {
        const int pixel = first + block * 8 + lane / 4;
        if (pixel >= strip.pixels) continue;
        Number* const to = y + (strip.output + pixel) * s.outputs + lane % 4 * 8;
        const auto& of_tiles = sums[block / 2];
        const int i = block % 2 * 2;
#pragma unroll
        for (int tile = 0; tile < 8; tile += 4) {
          const auto pair = [&](int n) {
            return rounded_pair<Number>(of_tiles[tile + n][i], of_tiles[tile + n][i + 1]);
          };
          *reinterpret_cast<uint4*>(to + tile * 8) = {pair(0), pair(1), pair(2), pair(3)};
        }
      }
    }
  }
}

// The strip's part of d_y in shared memory, a row for each pixel.
using PixelTile = Tile<image_outputs>;

inline int pixels_of_tile(const ImageStrips& s) {
  return static_cast<int>(ceiling_quotient(s.pixels(), 16)) * 16;
}

// Copies a strip's d_y of 64 outputs; pixels beyond it become zeros.
template <class Number>
__device__ __forceinline__ void copy_pixels(const ImageStrips& s, const ImageStrip& strip,
                                            int pixels, const Number* d_y, PixelTile to) {
  constexpr int chunks = PixelTile::chunks;
  for (int i = threadIdx.x; i < pixels * chunks; i += image_threads) {
    const int pixel = i / chunks, chunk = i % chunks;
    const bool exists = pixel < strip.pixels;
    const Number* from = d_y + (strip.output + pixel) * s.outputs + chunk * 8;
    copy_16_async(to.at(pixel, chunk), exists ? from : d_y, exists);
  }
}

// Computes partial sums over pixels, [gridDim.x][outputs][7][7][3]; a warp has a row of the window.
// Block x takes every gridDim.x-th strip; block y has 64 of the outputs. A product's columns are
// numbers of a window's row: the even and the odd ones of the first 16, and the next eight.
template <class Number>
__global__ void __launch_bounds__(image_threads, 2)
    sum_image_weight_gradients(const ImageStrips s, int pixels, const Number* x, const Number* d_y,
                               float* partials) {
  const PixelTile tile{shared_memory()};
  const SharedAddress windows = tile.start + PixelTile::bytes(pixels), rows = windows + pixels * 4;
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const int column = lane / 4;
  for (int pixel = threadIdx.x; pixel < pixels; pixel += image_threads)
    store_shared(windows + pixel * 4,
                 static_cast<std::uint32_t>(s.window_of(min(pixel, s.pixels() - 1))));
  const SharedAddress row = rows + warp * s.row_bytes();
  constexpr std::uint32_t low_halves = 0x5410, high_halves = 0x7632;
  const std::uint32_t halves = column % 2 == 0 ? low_halves : high_halves;
  float sums[4][3][4] = {};
  for (int index = blockIdx.x; index < s.count; index += gridDim.x) {
    const ImageStrip strip(s, index);
    __syncthreads();  // all warps have read the strip before
    copy_image_rows(s, strip, x, rows);
    copy_pixels(s, strip, pixels, d_y + blockIdx.y * image_outputs, tile);
    wait_for_copies();
    __syncthreads();
    for (int first = 0; first < strip.pixels; first += 16) {
      std::uint32_t words[4], other_words[4];
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const float2 pair = load_shared_pair(windows + (first + half * 8 + lane % 4 * 2) * 4);
#pragma unroll
        for (int i = 0; i < 2; ++i) {
          const SharedAddress window = row + __float_as_uint(i == 0 ? pair.x : pair.y);
          words[2 * half + i] = load_shared_word(window + column * 4);
          other_words[2 * half + i] = load_shared_word(window + 32 + column / 2 * 4);
        }
      }
      std::uint32_t b[3][2];
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        b[0][half] = __byte_perm(words[2 * half], words[2 * half + 1], low_halves);
        b[1][half] = __byte_perm(words[2 * half], words[2 * half + 1], high_halves);
        b[2][half] = __byte_perm(other_words[2 * half], other_words[2 * half + 1], halves);
      }
      const int pixel = first + lane / 16 * 8 + lane % 8;
#pragma unroll
      for (int part = 0; part < 4; ++part) {
        const Blocks a = load_blocks_turned(tile.at(pixel, 2 * part + lane / 8 % 2));
#pragma unroll
        for (int n = 0; n < 3; ++n) multiply_blocks<Number>(sums[part][n], a, b[n][0], b[n][1]);
      }
    }
  }
  partials += (static_cast<std::int64_t>(blockIdx.x) * s.outputs + blockIdx.y * image_outputs) *
                  window_taps +
              warp * row_taps;
#pragma unroll
  for (int part = 0; part < 4; ++part) {
#pragma unroll
    for (int n = 0; n < 3; ++n) {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const int output = part * 16 + lane / 4 + i / 2 * 8, at = lane % 4 * 2 + i % 2;
        const int tap = (n < 2 ? 2 * at + n : 16 + at) - s.shift();
        if (tap >= 0 && tap < row_taps) partials[output * window_taps + tap] = sums[part][n][i];
      }
    }
  }
}

constexpr int sum_columns = 32, sum_lines = 8;

// Adds the parts in an order that does not depend on the device.
template <class Number>
__global__ void __launch_bounds__(sum_columns* sum_lines)
    add_weight_gradients(const float* partials, int parts, int columns, bool accumulate,
                         Number* d_weight) {
  __shared__ float of_lines[sum_lines][sum_columns];
  const int column = blockIdx.x * sum_columns + threadIdx.x;
  float sum = 0.0f;
  if (column < columns) {
    for (int part = threadIdx.y; part < parts; part += sum_lines)
      sum += partials[static_cast<std::int64_t>(part) * columns + column];
  }
  of_lines[threadIdx.y][threadIdx.x] = sum;
  __syncthreads();
  if (threadIdx.y != 0 || column >= columns) return;
  float all = accumulate ? to_float(d_weight[column]) : 0.0f;
  for (int line = 0; line < sum_lines; ++line) all += of_lines[line][threadIdx.x];
  d_weight[column] = from_float<Number>(all);
}

}  // namespace stepgate
