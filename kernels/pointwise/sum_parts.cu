// SPDX-License-Identifier: MIT
// The CUDA side of sum_parts. Meaning and shapes: pointwise.h.
#include "kernels/launch.cuh"
#include "kernels/pointwise/pointwise.h"

namespace stepgate {
namespace {

constexpr int block_threads = 1024;
constexpr int block_columns = 32;
constexpr int warps = block_threads / 32;

// A block sums 32 columns; a warp reads 32 neighbours of a part. The partials are a few MB that
// were written just before, so that they come from the second-level cache; what counts is that all
// of a thread's loads fly at once. The order of the sum: a warp's parts, then the warps.
template <class Number>
__global__ void __launch_bounds__(block_threads)
    sum_parts(const float* partials, Number* sums, std::int64_t parts, std::int64_t columns,
              bool accumulate) {
  __shared__ float of_warp[warps][block_columns];
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const std::int64_t column = static_cast<std::int64_t>(blockIdx.x) * block_columns + lane;
  float sum = 0.0f;
  if (column < columns) {
#pragma unroll 8
    for (std::int64_t part = warp; part < parts; part += warps) {
      sum += partials[part * columns + column];
    }
  }
  of_warp[warp][lane] = sum;
  __syncthreads();
  if (warp != 0 || column >= columns) return;
  sum = 0.0f;
#pragma unroll
  for (int i = 0; i < warps; ++i) sum += of_warp[i][lane];
  if (accumulate) sum += to_float(sums[column]);
  sums[column] = from_float<Number>(sum);
}

}  // namespace

Launch prepare_sum_parts(const KernelShape& shape, DType dtype, const KernelAttributes& attributes,
                         const LaunchContext&) {
  const bool accumulate = attributes.as<kernels::SumParts>().accumulate;
  const auto blocks = static_cast<unsigned>(ceiling_quotient(shape.columns, block_columns));
  return with_storage(dtype, [&](auto zero) -> Launch {
    using Number = decltype(zero);
    return [=](void* const* buffers, cudaStream_t stream) {
      sum_parts<<<blocks, block_threads, 0, stream>>>(static_cast<const float*>(buffers[0]),
                                                      static_cast<Number*>(buffers[1]), shape.depth,
                                                      shape.columns, accumulate);
      check_launch("sum_parts");
    };
  });
}

}  // namespace stepgate
