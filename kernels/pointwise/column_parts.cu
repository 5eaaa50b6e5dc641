// SPDX-License-Identifier: MIT
// The CUDA side of column_parts. Meaning and shapes: pointwise.h.
#include "kernels/launch.cuh"
#include "kernels/pointwise/pointwise.h"

namespace stepgate {
namespace {

constexpr int block_threads = 256;
constexpr int block_columns = static_cast<int>(columns_of_part);

template <class Number>
struct Call {
  const Number* dy;
  float* partials;
  std::int64_t rows;
  std::int64_t columns;
  std::int64_t parts;
};

// A block sums 256 columns of a part: block_columns / count neighbouring threads read a row's, the
// rest of the block other rows of the part. The order of the sum: a thread's rows, then the threads
// of a column.
template <int count, class Number>
__global__ void __launch_bounds__(block_threads) column_parts_of(const Call<Number> call) {
  constexpr int threads_per_row = block_columns / count;
  constexpr int rows_at_once = block_threads / threads_per_row;
  __shared__ float partial[rows_at_once][block_columns];
  const int row_of_block = threadIdx.x / threads_per_row;
  const int column_of_block = threadIdx.x % threads_per_row * count;
  const std::int64_t first_column = static_cast<std::int64_t>(blockIdx.y) * block_columns;
  const std::int64_t column = first_column + column_of_block;

  float sums[count] = {};
  if (column < call.columns) {
    const std::int64_t step = rows_at_once * call.parts;
#pragma unroll 4
    for (std::int64_t row = blockIdx.x + row_of_block * call.parts; row < call.rows; row += step) {
      const auto pack = load<count>(call.dy, row * call.columns + column);
#pragma unroll
      for (int i = 0; i < count; ++i) sums[i] += to_float(pack.values[i]);
    }
  }
#pragma unroll
  for (int i = 0; i < count; ++i) partial[row_of_block][column_of_block + i] = sums[i];
  __syncthreads();

  const std::int64_t own = first_column + threadIdx.x;
  if (own >= call.columns) return;
  float sum = 0.0f;
#pragma unroll
  for (int row = 0; row < rows_at_once; ++row) sum += partial[row][threadIdx.x];
  call.partials[blockIdx.x * call.columns + own] = sum;
}

}  // namespace

Launch prepare_column_parts(const KernelShape& shape, DType dtype, const KernelAttributes&,
                            const LaunchContext&) {
  static_assert(block_threads == block_columns, "the last step gives every thread a column");
  const dim3 blocks(static_cast<unsigned>(shape.depth),
                    static_cast<unsigned>(ceiling_quotient(shape.columns, block_columns)));
  return with_storage(dtype, [&](auto zero) -> Launch {
    using Number = decltype(zero);
    return [shape, blocks](void* const* buffers, cudaStream_t stream) {
      constexpr int count = access_bytes / sizeof(Number);
      const Call<Number> call{static_cast<const Number*>(buffers[0]),
                              static_cast<float*>(buffers[1]), shape.rows, shape.columns,
                              shape.depth};
      const bool packs = shape.columns % count == 0 && aligned_to_access(call.dy);
      auto* const kernel = packs ? column_parts_of<count, Number> : column_parts_of<1, Number>;
      kernel<<<blocks, block_threads, 0, stream>>>(call);
      check_launch("column_parts");
    };
  });
}

}  // namespace stepgate
