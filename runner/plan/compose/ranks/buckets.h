// SPDX-License-Identifier: MIT
// Chooses the gradients that are reduced together, by PyTorch's rule for DistributedDataParallel
// (compute_bucket_assignment_by_size). A bucket takes parameter after parameter until its bytes
// reach the limit; a parameter is never split.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "scenario/choices.h"

namespace stepgate {

// A range of the flat buffer of gradients, up to the next bucket. Padding that aligns a tensor
// belongs to the tensor before it.
struct Bucket {
  std::int64_t first = 0;  // element
  std::int64_t elements = 0;
};

struct BucketLimits {
  std::int64_t first_bytes = 0;  // of the first bucket
  std::int64_t bytes = 0;        // of the others; 0: one parameter each
  BucketOrder order = BucketOrder::reverse;
};

// The position and size of a tensor in the flat buffer. With sharded weights, tensors of the same
// unit are gathered together. A unit is a block, or all tensors before or after the blocks.
struct FlatTensor {
  std::int64_t first = 0;
  std::int64_t elements = 0;
  int unit = 0;
};

// Buckets in the order of their reduction. `tensors` are in the order of the forward pass and of
// the flat buffer.
std::vector<Bucket> buckets_of(std::span<const FlatTensor> tensors, std::int64_t flat_elements,
                               std::int64_t element_bytes, const BucketLimits&);

// Like buckets_of, with a bucket for each unit, from the last to the first.
std::vector<Bucket> units_of(std::span<const FlatTensor> tensors, std::int64_t flat_elements);

}  // namespace stepgate
