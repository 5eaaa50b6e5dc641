// SPDX-License-Identifier: MIT
// The CUDA side of bias_gradient. Meaning and shapes: pointwise.h.
#include "kernels/launch.cuh"
#include "kernels/packed_numbers.cuh"
#include "kernels/pointwise/pointwise.h"

namespace stepgate {
namespace {

constexpr int block_threads = 1024;
constexpr int block_columns = 32;
constexpr int warps = block_threads / 32;

// A block sums all rows of 32 columns, so a wide matrix fills the device (128 blocks at 4096
// columns) and one launch suffices. 32 / count neighbouring threads read a row's 32 columns, the
// rest of the block other rows. The order of the sum is fixed: a thread's rows, then the rows of
// its warp, then the warps.
template <int count, class Number>
__global__ void __launch_bounds__(block_threads)
    bias_gradient(const Number* dy, Number* db, std::int64_t rows, std::int64_t columns,
                  bool accumulate) {
  constexpr int threads_per_row = block_columns / count;
  constexpr int rows_at_once = block_threads / threads_per_row;
  __shared__ float partial[warps][block_columns];
  const int lane_column = (threadIdx.x % threads_per_row) * count;
  const std::int64_t column = static_cast<std::int64_t>(blockIdx.x) * block_columns + lane_column;

  float sums[count] = {};
  if (column < columns) {
#pragma unroll 4
    for (std::int64_t row = threadIdx.x / threads_per_row; row < rows; row += rows_at_once) {
      const auto pack = load<count>(dy, row * columns + column);
#pragma unroll
      for (int i = 0; i < count; ++i) sums[i] += to_float(pack.values[i]);
    }
  }
#pragma unroll
  for (int distance = 16; distance >= threads_per_row; distance /= 2) {
#pragma unroll
    for (int i = 0; i < count; ++i) sums[i] += __shfl_xor_sync(0xffffffffu, sums[i], distance);
  }
  const int warp = threadIdx.x / 32;
  if (threadIdx.x % 32 < threads_per_row) {
#pragma unroll
    for (int i = 0; i < count; ++i) partial[warp][lane_column + i] = sums[i];
  }
  __syncthreads();

  const std::int64_t own = static_cast<std::int64_t>(blockIdx.x) * block_columns + threadIdx.x;
  if (threadIdx.x >= block_columns || own >= columns) return;
  float sum = 0.0f;
#pragma unroll
  for (int i = 0; i < warps; ++i) sum += partial[i][threadIdx.x];
  if (accumulate) sum += to_float(db[own]);
  db[own] = from_float<Number>(sum);
}

constexpr int wide_threads = 256;

// The same for few rows of many columns: a thread sums all rows of a pack of columns, eight of them
// on their way at a time.
template <int count, class Number>
__global__ void __launch_bounds__(wide_threads)
    bias_gradient_wide(const Number* dy, Number* db, std::int64_t rows, std::int64_t columns,
                       bool accumulate) {
  const std::int64_t column =
      (static_cast<std::int64_t>(blockIdx.x) * wide_threads + threadIdx.x) * count;
  if (column >= columns) return;
  float sums[count] = {};
#pragma unroll 8
  for (std::int64_t row = 0; row < rows; ++row) {
    const auto pack = load<count>(dy, row * columns + column);
#pragma unroll
    for (int i = 0; i < count; ++i) sums[i] += number_of(pack, i);
  }
  if (accumulate) {
    const auto old = load<count>(db, column);
#pragma unroll
    for (int i = 0; i < count; ++i) sums[i] += number_of(old, i);
  }
  store<count>(db, column, packed<Number>(sums));
}

}  // namespace

namespace {

// Whether the rows are too few for the threads of a block, and the packs of columns enough for
// those of the device.
constexpr bool is_wide(std::int64_t rows, std::int64_t packs) {
  constexpr std::int64_t most_rows = 256, least_packs = 8192;
  return rows <= most_rows && packs >= least_packs;
}

}  // namespace

Launch prepare_bias_gradient(const KernelShape& shape, DType dtype,
                             const KernelAttributes& attributes, const LaunchContext&) {
  const bool accumulate = attributes.as<kernels::BiasGradient>().accumulate;
  const auto blocks = static_cast<unsigned>(ceiling_quotient(shape.columns, block_columns));
  return with_storage(dtype, [&](auto zero) -> Launch {
    using Number = decltype(zero);
    return [=](void* const* buffers, cudaStream_t stream) {
      constexpr int count = access_bytes / sizeof(Number);
      const auto* dy = static_cast<const Number*>(buffers[0]);
      auto* db = static_cast<Number*>(buffers[1]);
      const bool packs = shape.columns % count == 0 && aligned_to_access(dy);
      if (packs && aligned_to_access(db) && is_wide(shape.rows, shape.columns / count)) {
        const std::int64_t threads = shape.columns / count;
        const auto wide_blocks = static_cast<unsigned>(ceiling_quotient(threads, wide_threads));
        bias_gradient_wide<count><<<wide_blocks, wide_threads, 0, stream>>>(
            dy, db, shape.rows, shape.columns, accumulate);
        return check_launch("bias_gradient");
      }
      auto* const kernel = packs ? bias_gradient<count, Number> : bias_gradient<1, Number>;
      kernel<<<blocks, block_threads, 0, stream>>>(dy, db, shape.rows, shape.columns, accumulate);
      check_launch("bias_gradient");
    };
  });
}

}  // namespace stepgate
