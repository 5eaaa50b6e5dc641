// SPDX-License-Identifier: MIT
// The CUDA side of merge_heads. Meaning and shapes: heads.h.
#include "kernels/heads/heads.h"

#include "kernels/heads/packed_rows.cuh"

namespace stepgate {
namespace {

struct Merge {
  __device__ std::int64_t from(std::int64_t, std::int64_t in_matrices) const { return in_matrices; }
  __device__ std::int64_t to(std::int64_t in_rows, std::int64_t) const { return in_rows; }
};

}  // namespace

Launch prepare_merge_heads(const KernelShape& shape, DType dtype,
                           const KernelAttributes& attributes, const LaunchContext&) {
  const auto parts = static_cast<std::int64_t>(attributes.as<kernels::MergeHeads>().parts);
  return packed_rows_launch("merge_heads", shape, dtype, parts, Merge{});
}

}  // namespace stepgate
