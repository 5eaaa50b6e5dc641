// SPDX-License-Identifier: MIT
// The CUDA side of ingest_tokens. Meaning and shapes: input.h.
#include "kernels/input/input.h"
#include "kernels/launch.cuh"

namespace stepgate {
namespace {

constexpr int block_threads = 256;
constexpr int largest_slices = 8;

struct TokenGrid {
  std::int64_t positions;
  std::int64_t labelled;  // of them, the first
  std::int64_t words;
  std::int64_t blocks_per_sample;
  std::uint32_t vocabulary;
};

// A block takes blockDim.x neighbouring positions of one sample; its blockDim.y slices share the
// words of each. Along x the threads of a warp read neighbouring words. Rows of T + 1 words start
// at any address, so words move one by one.
__global__ void __launch_bounds__(block_threads)
    ingest_tokens(const std::uint32_t* payload, std::int32_t* tokens, std::int32_t* labels,
                  TokenGrid grid) {
  __shared__ std::uint32_t partial[block_threads];
  const std::int64_t sample = blockIdx.x / grid.blocks_per_sample;
  const std::int64_t position = (blockIdx.x % grid.blocks_per_sample) * blockDim.x + threadIdx.x;
  const std::uint32_t* row = payload + sample * grid.words;
  const std::int64_t period = grid.positions + 1;

  std::uint32_t folded = 0;
  if (position < period) {
#pragma unroll 8
    for (std::int64_t word = position + threadIdx.y * period; word < grid.words;
         word += blockDim.y * period) {
      folded ^= row[word];
    }
  }
  partial[threadIdx.y * blockDim.x + threadIdx.x] = folded;
  __syncthreads();
  if (threadIdx.y != 0 || position >= period) return;

  for (unsigned slice = 1; slice < blockDim.y; ++slice) {
    folded ^= partial[slice * blockDim.x + threadIdx.x];
  }
  const std::int32_t token = token_of(folded, grid.vocabulary);
  const std::int64_t first = sample * grid.positions;
  if (position < grid.positions) tokens[first + position] = token;
  if (position > 0) {
    labels[first + position - 1] = position <= grid.labelled ? token : label_of_padding;
  }
}

}  // namespace

Launch prepare_ingest_tokens(const KernelShape& shape, DType, const KernelAttributes& attributes,
                             const LaunchContext&) {
  // As many slices as a position has words, so that no thread of a short sample is idle.
  unsigned slices = 1;
  while (slices < largest_slices && slices * (shape.columns + 1) < shape.depth) slices *= 2;
  const dim3 threads(block_threads / slices, slices);
  const TokenGrid grid{
      shape.columns, labelled_positions(shape, attributes), shape.depth,
      ceiling_quotient(shape.columns + 1, threads.x),
      static_cast<std::uint32_t>(attributes.as<kernels::IngestTokens>().vocabulary)};
  const auto blocks = static_cast<unsigned>(shape.rows * grid.blocks_per_sample);
  return [=](void* const* buffers, cudaStream_t stream) {
    ingest_tokens<<<blocks, threads, 0, stream>>>(static_cast<const std::uint32_t*>(buffers[0]),
                                                  static_cast<std::int32_t*>(buffers[1]),
                                                  static_cast<std::int32_t*>(buffers[2]), grid);
    check_launch("ingest_tokens");
  };
}

}  // namespace stepgate
