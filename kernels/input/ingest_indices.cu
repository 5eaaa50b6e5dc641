// SPDX-License-Identifier: MIT
// The CUDA side of ingest_indices. Meaning and shapes: input.h.
#include "kernels/input/input.h"
#include "kernels/launch.cuh"

namespace stepgate {
namespace {

constexpr int block_threads = 256;

struct IndexGrid {
  std::int64_t samples;
  std::int64_t tables;
  std::int64_t words;
  std::uint32_t table_rows;
  std::uint32_t classes;
  bool by_table;
};

// A thread takes an index of a sample, or its label. Neighbouring threads read neighbouring words.
__global__ void __launch_bounds__(block_threads)
    ingest_indices(const std::uint32_t* payload, std::int32_t* indices, std::int32_t* labels,
                   IndexGrid grid) {
  const std::int64_t period = grid.tables + 1;
  const std::int64_t thread = static_cast<std::int64_t>(blockIdx.x) * block_threads + threadIdx.x;
  const std::int64_t sample = thread / period;
  const std::int64_t table = thread % period;
  if (sample >= grid.samples) return;
  const std::uint32_t* row = payload + sample * grid.words;
  std::uint32_t folded = 0;
  for (std::int64_t word = table; word < grid.words; word += period) folded ^= row[word];
  if (table == grid.tables) {
    labels[sample] = token_of(folded, grid.classes);
    return;
  }
  const std::int32_t index = token_of(folded, grid.table_rows);
  if (grid.by_table) {
    indices[table * grid.samples + sample] = index;
  } else {
    indices[sample * grid.tables + table] =
        static_cast<std::int32_t>(table * grid.table_rows) + index;
  }
}

}  // namespace

Launch prepare_ingest_indices(const KernelShape& shape, DType, const KernelAttributes& attributes,
                              const LaunchContext&) {
  const auto [table_rows, classes, by_table] = attributes.as<kernels::IngestIndices>();
  const IndexGrid grid{shape.rows,
                       shape.columns,
                       shape.depth,
                       static_cast<std::uint32_t>(table_rows),
                       static_cast<std::uint32_t>(classes),
                       by_table};
  const auto blocks =
      static_cast<unsigned>(ceiling_quotient(shape.rows * (shape.columns + 1), block_threads));
  return [=](void* const* buffers, cudaStream_t stream) {
    ingest_indices<<<blocks, block_threads, 0, stream>>>(
        static_cast<const std::uint32_t*>(buffers[0]), static_cast<std::int32_t*>(buffers[1]),
        static_cast<std::int32_t*>(buffers[2]), grid);
    check_launch("ingest_indices");
  };
}

}  // namespace stepgate
