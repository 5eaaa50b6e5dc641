// SPDX-License-Identifier: MIT
// The CUDA side of bias_gradient. Meaning and shapes: bias_gradient.h.
#include "kernels/bias_gradient/bias_gradient.h"
#include "kernels/launch.cuh"

namespace stepgate {
namespace {

// --- kernels -------------------------------------------------------------------------------------

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

}  // namespace

// --- launcher ------------------------------------------------------------------------------------

Launch prepare_bias_gradient(const KernelShape& shape, DType dtype, const KernelScalars& scalars,
                             const LaunchContext&) {
  const bool accumulate = scalars[bias_gradient_scalar::accumulate] != 0;
  const auto blocks = static_cast<unsigned>(ceiling_quotient(shape.columns, block_columns));
  return with_storage(dtype, [&](auto zero) -> Launch {
    using Number = decltype(zero);
    return [=](void* const* buffers, cudaStream_t stream) {
      constexpr int count = access_bytes / sizeof(Number);
      const auto* dy = static_cast<const Number*>(buffers[0]);
      auto* db = static_cast<Number*>(buffers[1]);
      const bool packs = shape.columns % count == 0 && aligned_to_access(dy);
      auto* const kernel = packs ? bias_gradient<count, Number> : bias_gradient<1, Number>;
      kernel<<<blocks, block_threads, 0, stream>>>(dy, db, shape.rows, shape.columns, accumulate);
      check_launch("bias_gradient");
    };
  });
}

}  // namespace stepgate
