// SPDX-License-Identifier: MIT
// Which gradients are reduced together, by PyTorch's rule for DistributedDataParallel
// (compute_bucket_assignment_by_size): parameter after parameter until the bucket's bytes reach its
// limit; a parameter is never split.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "scenario/choices.h"

namespace stepgate {

// A stretch of the flat buffer of gradients, up to where the next bucket begins: padding that
// aligns tensors belongs to the tensors before it.
struct Bucket {
  std::int64_t first = 0;  // element
  std::int64_t elements = 0;
};

struct BucketLimits {
  std::int64_t first_bytes = 0;  // of the first bucket
  std::int64_t bytes = 0;        // of the others; 0: one parameter each
  BucketOrder order = BucketOrder::reverse;
};

// Where a tensor begins in the flat buffer, how many elements it has, and with which others it is
// gathered where every rank keeps only its part of the weights: those of one block, or what is
// before the blocks or behind them.
struct FlatTensor {
  std::int64_t first = 0;
  std::int64_t elements = 0;
  int unit = 0;
};

// In the order in which they are reduced. Tensors in the order of the forward pass, which is that
// of the flat buffer.
std::vector<Bucket> buckets_of(std::span<const FlatTensor> tensors, std::int64_t flat_elements,
                               std::int64_t element_bytes, const BucketLimits&);

// Units instead, from the last to the first.
std::vector<Bucket> units_of(std::span<const FlatTensor> tensors, std::int64_t flat_elements);

}  // namespace stepgate
