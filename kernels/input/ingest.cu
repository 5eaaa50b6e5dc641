// SPDX-License-Identifier: MIT
// The CUDA side of ingest. Meaning and shapes: input.h.
#include "kernels/input/input.h"
#include "kernels/launch.cuh"

namespace stepgate {
namespace {

constexpr int block_threads = 256;
constexpr int largest_slices = 8;

struct IngestGrid {
  std::int64_t features;
  std::int64_t words;
  std::int64_t blocks_per_sample;
  std::int64_t least_terms;   // of a feature's mean
  std::int64_t longer_means;  // so many features, the first ones, have one term more
};

// A block takes blockDim.x packs of neighbouring features of one sample. Its blockDim.y slices
// share the terms of each mean; slice 0 adds the slices up in their order. Along x the threads of a
// warp read neighbouring words.
template <int count, class Number>
__global__ void __launch_bounds__(block_threads)
    ingest(const float* payload, Number* features, std::int32_t* labels, IngestGrid grid) {
  __shared__ float partial[block_threads * count];
  const std::int64_t sample = blockIdx.x / grid.blocks_per_sample;
  const std::int64_t pack = (blockIdx.x % grid.blocks_per_sample) * blockDim.x + threadIdx.x;
  const std::int64_t feature = pack * count;
  const float* row = payload + sample * grid.words;
  const std::int64_t data_words = grid.words - 1;  // the last one is the label

  float sums[count] = {};
  if (feature < grid.features) {
#pragma unroll 8
    for (std::int64_t word = feature + threadIdx.y * grid.features; word < data_words;
         word += blockDim.y * grid.features) {
      // The last pack of a sample may hold its label, which is no datum.
      const auto terms = load<count>(row, word);
#pragma unroll
      for (int i = 0; i < count; ++i) sums[i] += word + i < data_words ? terms.values[i] : 0.0f;
    }
  }
  const int slot = threadIdx.y * blockDim.x + threadIdx.x;
#pragma unroll
  for (int i = 0; i < count; ++i) partial[i * block_threads + slot] = sums[i];
  __syncthreads();
  if (threadIdx.y != 0 || feature >= grid.features) return;

  Pack<Number, count> means;
#pragma unroll
  for (int i = 0; i < count; ++i) {
    float sum = 0.0f;
    for (int slice = 0; slice < blockDim.y; ++slice) {
      sum += partial[i * block_threads + slice * blockDim.x + threadIdx.x];
    }
    const std::int64_t terms = grid.least_terms + (feature + i < grid.longer_means ? 1 : 0);
    means.values[i] = from_float<Number>(sum / static_cast<float>(terms));
  }
  store<count>(features, sample * grid.features + feature, means);
  if (pack == 0) {
    const auto bits = static_cast<std::uint64_t>(__float_as_uint(row[data_words]));
    labels[sample] = static_cast<std::int32_t>(bits % static_cast<std::uint64_t>(grid.features));
  }
}

template <int count, class Number>
void launch(const KernelShape& shape, void* const* buffers, cudaStream_t stream) {
  // As many slices as there are terms, so that no thread of a short sample is idle.
  unsigned slices = 1;
  while (slices < largest_slices && slices * shape.columns < shape.depth - 1) slices *= 2;
  const dim3 threads(block_threads / slices, slices);
  const std::int64_t packs = shape.columns / count;
  const std::int64_t data_words = shape.depth - 1;
  const IngestGrid grid{shape.columns, shape.depth, ceiling_quotient(packs, threads.x),
                        data_words / shape.columns, data_words % shape.columns};
  const auto blocks = static_cast<unsigned>(shape.rows * grid.blocks_per_sample);
  ingest<count><<<blocks, threads, 0, stream>>>(static_cast<const float*>(buffers[0]),
                                                static_cast<Number*>(buffers[1]),
                                                static_cast<std::int32_t*>(buffers[2]), grid);
  check_launch("ingest");
}

}  // namespace

Launch prepare_ingest(const KernelShape& shape, DType dtype, const KernelAttributes&,
                      const LaunchContext&) {
  return with_storage(dtype, [&](auto zero) -> Launch {
    using Number = decltype(zero);
    return [shape](void* const* buffers, cudaStream_t stream) {
      constexpr int count = access_bytes / sizeof(float);
      const bool rows_are_packs = shape.columns % count == 0 && shape.depth % count == 0;
      if (rows_are_packs && aligned_to_access(buffers[0], buffers[1])) {
        launch<count, Number>(shape, buffers, stream);
      } else {
        launch<1, Number>(shape, buffers, stream);
      }
    };
  });
}

}  // namespace stepgate
