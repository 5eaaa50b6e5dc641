// SPDX-License-Identifier: MIT
// CUDA kernels and launchers of numbers in fp8; fp8.h has their meaning and shapes. Absolute values
// are compared by their bits, which order them as the numbers do.
#include "kernels/fp8/fp8.h"

#include <cuda_fp8.h>

#include "kernels/fp8/fp8_numbers.h"
#include "kernels/launch.cuh"

namespace stepgate {
namespace {

constexpr int amax_threads = 256;
constexpr int amax_packs = 4;  // in flight in each thread
constexpr int bf16_pack = access_bytes / 2;
constexpr std::uint32_t sizes_of_two = 0x7fff7fffu;  // two bf16 numbers without their signs

// The largest number of a block, in its first thread.
template <int threads>
__device__ __forceinline__ std::uint32_t block_max(std::uint32_t value) {
  __shared__ std::uint32_t of_warps[threads / 32];
  const std::uint32_t of_warp = __reduce_max_sync(~0u, value);
  if (threadIdx.x % 32 == 0) of_warps[threadIdx.x / 32] = of_warp;
  __syncthreads();
  if (threadIdx.x >= 32) return 0;
  return __reduce_max_sync(~0u, threadIdx.x < threads / 32 ? of_warps[threadIdx.x] : 0u);
}

// The bits of the larger of two numbers without signs, as fp32.
__device__ __forceinline__ std::uint32_t larger_of_two(std::uint32_t two) {
  return max(two << 16, two & 0xffff0000u);
}

__device__ __forceinline__ std::uint32_t size_bits(__nv_bfloat16 number) {
  return static_cast<std::uint32_t>(__bfloat16_as_ushort(number) & 0x7fffu) << 16;
}

template <bool packs>
__global__ void __launch_bounds__(amax_threads)
    find_amax(const __nv_bfloat16* x, std::uint32_t* maxima, std::int64_t numbers,
              std::int64_t part) {
  const std::int64_t begin = blockIdx.x * part, end = min(begin + part, numbers);
  std::int64_t i = begin + (packs ? threadIdx.x * bf16_pack : threadIdx.x);
  std::uint32_t amax = 0;
  if constexpr (packs) {
    constexpr std::int64_t step = amax_threads * bf16_pack;
    std::uint32_t two = 0;
    const auto take = [&](const uint4& pack) {
      for (const std::uint32_t word : {pack.x, pack.y, pack.z, pack.w})
        two = __vmaxu2(two, word & sizes_of_two);
    };
    const auto* const from = reinterpret_cast<const uint4*>(x);
    for (; i + (amax_packs - 1) * step + bf16_pack <= end; i += amax_packs * step) {
      uint4 read[amax_packs];
#pragma unroll
      for (int pack = 0; pack < amax_packs; ++pack)
        read[pack] = from[(i + pack * step) / bf16_pack];
#pragma unroll
      for (int pack = 0; pack < amax_packs; ++pack) take(read[pack]);
    }
    for (; i + bf16_pack <= end; i += step) take(from[i / bf16_pack]);
    amax = larger_of_two(two);
    // One thread has a pack that would exceed the end.
    for (; i < end; ++i) amax = max(amax, size_bits(x[i]));
  } else {
    for (; i < end; i += amax_threads) amax = max(amax, size_bits(x[i]));
  }
  amax = block_max<amax_threads>(amax);
  if (threadIdx.x == 0) maxima[blockIdx.x] = amax;
}

// A block converts a square of 128 x 128 numbers. A thread reads 16 neighbours of a row, four times
// and 32 rows apart, and keeps them as words of four bytes in shared memory. Then it takes the
// words of 16 rows below each other, turns four by four bytes at a time and writes 16 rows of four
// columns. Shared memory has a word more than a row needs, and four more than 16 rows need, so that
// a warp finds its words in different banks either way.
constexpr int tile = 128, tile_threads = 256, run = 16;
constexpr int runs_of_row = tile / run, rows_at_once = tile_threads / runs_of_row;
constexpr int tile_turns = tile / rows_at_once;
constexpr int words_of_run = run / 4;
constexpr int word_pitch = tile / 4 + 1, words_of_runs = run * word_pitch + 4;
constexpr int tile_words = tile / run * words_of_runs;

__device__ __forceinline__ int word_at(int row, int word) {
  return row / run * words_of_runs + row % run * word_pitch + word;
}

// The matrix, where it goes and by which maxima it is scaled.
struct Fp8Matrix {
  const __nv_bfloat16* x;
  std::uint32_t* maxima;
  std::uint8_t* out;
  std::uint8_t* transposed;
  float* inverse_scale;
  std::int64_t rows, columns;
  int parts;  // maxima to scale by
};

template <__nv_fp8_interpretation_t format>
__device__ __forceinline__ std::uint32_t two_bytes(std::uint32_t pair, float scale) {
  const float low = __uint_as_float(pair << 16), high = __uint_as_float(pair & 0xffff0000u);
  return __nv_cvt_float2_to_fp8x2({__fmul_rn(low, scale), __fmul_rn(high, scale)}, __NV_SATFINITE,
                                  format);
}

// The 16 numbers of a row from `column` on, two in a word; 0 beyond the matrix.
constexpr int pairs_of_run = run / 2;
template <bool packs>
__device__ __forceinline__ void read_run(const Fp8Matrix& m, std::int64_t row, std::int64_t column,
                                         std::uint32_t (&pairs)[pairs_of_run]) {
  const __nv_bfloat16* const from = m.x + row * m.columns + column;
  const bool inside = row < m.rows && column < m.columns;
  if constexpr (packs) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const uint4 pack = inside ? reinterpret_cast<const uint4*>(from)[half] : uint4{};
      pairs[4 * half] = pack.x;
      pairs[4 * half + 1] = pack.y;
      pairs[4 * half + 2] = pack.z;
      pairs[4 * half + 3] = pack.w;
    }
  } else {
#pragma unroll
    for (int pair = 0; pair < pairs_of_run; ++pair) {
      pairs[pair] = 0;
      for (int i = 0; i < 2; ++i)
        if (inside && column + 2 * pair + i < m.columns)
          pairs[pair] |= static_cast<std::uint32_t>(__bfloat16_as_ushort(from[2 * pair + i]))
                         << 16 * i;
    }
  }
}

// Writes 16 bytes of a row of `width` bytes from `column` on, as far as they are in it.
template <bool packs>
__device__ __forceinline__ void write_run(std::uint8_t* to, std::int64_t row, std::int64_t rows,
                                          std::int64_t column, std::int64_t width,
                                          const std::uint32_t (&words)[words_of_run]) {
  if (row >= rows || column >= width) return;
  std::uint8_t* const at = to + row * width + column;
  if constexpr (packs) {
    *reinterpret_cast<uint4*>(at) = {words[0], words[1], words[2], words[3]};
  } else {
#pragma unroll
    for (int i = 0; i < run; ++i)
      if (column + i < width) at[i] = static_cast<std::uint8_t>(words[i / 4] >> i % 4 * 8);
  }
}

// Turns four rows of four bytes.
__device__ __forceinline__ void turn(const std::uint32_t (&rows)[4], std::uint32_t (&columns)[4]) {
  const std::uint32_t first_low = __byte_perm(rows[0], rows[1], 0x5140);
  const std::uint32_t first_high = __byte_perm(rows[0], rows[1], 0x7362);
  const std::uint32_t last_low = __byte_perm(rows[2], rows[3], 0x5140);
  const std::uint32_t last_high = __byte_perm(rows[2], rows[3], 0x7362);
  columns[0] = __byte_perm(first_low, last_low, 0x5410);
  columns[1] = __byte_perm(first_low, last_low, 0x7632);
  columns[2] = __byte_perm(first_high, last_high, 0x5410);
  columns[3] = __byte_perm(first_high, last_high, 0x7632);
}

template <bool packs>
__device__ __forceinline__ void write_transposed(const Fp8Matrix& m, const std::uint32_t* words,
                                                 std::int64_t first_row,
                                                 std::int64_t first_column) {
  const int thread = static_cast<int>(threadIdx.x);
  const int row = thread % runs_of_row * run, word = thread / runs_of_row;
  std::uint32_t columns[4][words_of_run];
#pragma unroll
  for (int i = 0; i < words_of_run; ++i) {
    std::uint32_t rows[4], turned[4];
#pragma unroll
    for (int j = 0; j < 4; ++j) rows[j] = words[word_at(row + 4 * i + j, word)];
    turn(rows, turned);
#pragma unroll
    for (int j = 0; j < 4; ++j) columns[j][i] = turned[j];
  }
#pragma unroll
  for (int j = 0; j < 4; ++j)
    write_run<packs>(m.transposed, first_column + 4 * word + j, m.columns, first_row + row, m.rows,
                     columns[j]);
}

// With `delayed`, the first of the maxima is the step's own, which the block's numbers may raise.
template <__nv_fp8_interpretation_t format, bool delayed, bool packs>
__global__ void __launch_bounds__(tile_threads, 3) quantize_fp8(Fp8Matrix m) {
  __shared__ std::uint32_t words[tile_words];
  __shared__ float shared_scale;
  const int thread = static_cast<int>(threadIdx.x);
  const std::int64_t across = (m.columns + tile - 1) / tile;
  const std::int64_t first_row = blockIdx.x / across * tile;
  const std::int64_t first_column = blockIdx.x % across * tile;
  const int row = thread / runs_of_row, column = thread % runs_of_row * run;
  std::uint32_t pairs[tile_turns][pairs_of_run];
#pragma unroll
  for (int i = 0; i < tile_turns; ++i)
    read_run<packs>(m, first_row + row + i * rows_at_once, first_column + column, pairs[i]);

  std::uint32_t amax = 0;
  for (int part = thread; part < m.parts; part += tile_threads)
    amax = max(amax, m.maxima[part + (delayed ? 1 : 0)]);
  amax = block_max<tile_threads>(amax);
  if (thread == 0) {
    constexpr Fp8Format numbers_of = format == __NV_E4M3 ? e4m3 : e5m2;
    shared_scale = fp8_scale(numbers_of, __uint_as_float(amax));
    if (blockIdx.x == 0) *m.inverse_scale = __fdiv_rn(1.0f, shared_scale);
  }
  __syncthreads();
  const float scale = shared_scale;

  std::uint32_t own = 0;
#pragma unroll
  for (int i = 0; i < tile_turns; ++i) {
    std::uint32_t bytes[words_of_run];
#pragma unroll
    for (int word = 0; word < words_of_run; ++word) {
      const std::uint32_t left = pairs[i][2 * word], right = pairs[i][2 * word + 1];
      if constexpr (delayed)
        own = __vmaxu2(own, __vmaxu2(left & sizes_of_two, right & sizes_of_two));
      bytes[word] = two_bytes<format>(left, scale) | two_bytes<format>(right, scale) << 16;
      words[word_at(row + i * rows_at_once, column / 4 + word)] = bytes[word];
    }
    write_run<packs>(m.out, first_row + row + i * rows_at_once, m.rows, first_column + column,
                     m.columns, bytes);
  }
  __syncthreads();
  write_transposed<packs>(m, words, first_row, first_column);
  if constexpr (delayed) {
    own = block_max<tile_threads>(larger_of_two(own));
    if (thread == 0 && own > 0) atomicMax(m.maxima, own);
  }
}

template <bool delayed>
Launch prepare_quantize(std::string_view kernel, const MatrixShape& shape, std::int64_t parts,
                        bool gradient) {
  return [=](void* const* buffers, cudaStream_t stream) {
    const Fp8Matrix m{.x = static_cast<const __nv_bfloat16*>(buffers[0]),
                      .maxima = static_cast<std::uint32_t*>(buffers[1]),
                      .out = static_cast<std::uint8_t*>(buffers[2]),
                      .transposed = static_cast<std::uint8_t*>(buffers[3]),
                      .inverse_scale = static_cast<float*>(buffers[4]),
                      .rows = shape.rows,
                      .columns = shape.columns,
                      .parts = static_cast<int>(parts)};
    const auto blocks =
        static_cast<unsigned>(ceiling_quotient(m.rows, tile) * ceiling_quotient(m.columns, tile));
    const bool packs =
        m.rows % run == 0 && m.columns % run == 0 && aligned_to_access(m.x, m.out, m.transposed);
    const auto launch = [&](auto* of) { of<<<blocks, tile_threads, 0, stream>>>(m); };
    if (gradient)
      launch(packs ? quantize_fp8<__NV_E5M2, delayed, true>
                   : quantize_fp8<__NV_E5M2, delayed, false>);
    else
      launch(packs ? quantize_fp8<__NV_E4M3, delayed, true>
                   : quantize_fp8<__NV_E4M3, delayed, false>);
    check_launch(kernel);
  };
}

// One warp moves the history of a tensor.
__global__ void __launch_bounds__(32) move_histories(float* all) {
  float* const maxima = all + blockIdx.x * amax_numbers;
  const auto index = static_cast<int>(threadIdx.x);
  const float before = index > 0 && index < amax_numbers ? maxima[index - 1] : 0;
  __syncwarp();
  if (index < amax_numbers) maxima[index] = before;
}

void require_bf16(std::string_view kernel, DType dtype) {
  if (dtype != DType::bf16)
    throw std::runtime_error(std::string(kernel) + ": the numbers beside fp8 are bf16");
}

}  // namespace

Launch kernels::AmaxParts::prepare(const Shape& shape, DType dtype, const Attributes&,
                                   const LaunchContext&) {
  require_bf16(name, dtype);
  const std::int64_t part = amax_part(shape);
  return [shape, part](void* const* buffers, cudaStream_t stream) {
    const auto* const x = static_cast<const __nv_bfloat16*>(buffers[0]);
    auto* const of = aligned_to_access(x) ? find_amax<true> : find_amax<false>;
    of<<<static_cast<unsigned>(shape.parts), amax_threads, 0, stream>>>(
        x, static_cast<std::uint32_t*>(buffers[1]), shape.numbers, part);
    check_launch(name);
  };
}

Launch kernels::QuantizeFp8::prepare(const Shape& shape, DType dtype, const Attributes& attributes,
                                     const LaunchContext&) {
  require_bf16(name, dtype);
  return prepare_quantize<false>(name, {shape.rows, shape.columns}, shape.parts,
                                 attributes.gradient);
}

Launch kernels::QuantizeFp8Delayed::prepare(const Shape& shape, DType dtype,
                                            const Attributes& attributes, const LaunchContext&) {
  require_bf16(name, dtype);
  return prepare_quantize<true>(name, shape, amax_history, attributes.gradient);
}

Launch kernels::MoveAmaxHistories::prepare(const Shape& shape, DType, const Attributes&,
                                           const LaunchContext&) {
  return
      [tensors = static_cast<unsigned>(shape.tensors)](void* const* buffers, cudaStream_t stream) {
        if (tensors == 0) return;
        move_histories<<<tensors, 32, 0, stream>>>(static_cast<float*>(buffers[0]));
        check_launch(name);
      };
}

}  // namespace stepgate
