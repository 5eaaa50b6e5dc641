// SPDX-License-Identifier: MIT
#include "plan/compose/ranks/buckets.h"

#include <algorithm>

namespace stepgate {
namespace {

// The first and the last tensor of a bucket.
struct TensorRange {
  std::size_t first = 0;
  std::size_t last = 0;
};

std::vector<TensorRange> ranges_of(std::span<const FlatTensor> tensors, std::int64_t element_bytes,
                                   const BucketLimits& limits) {
  std::vector<TensorRange> ranges;
  std::int64_t bytes = 0;
  bool is_open = false;
  for (std::size_t walked = 0; walked < tensors.size(); ++walked) {
    const std::size_t index =
        limits.order == BucketOrder::reverse ? tensors.size() - 1 - walked : walked;
    if (!is_open) {
      ranges.push_back({index, index});
      bytes = 0;
    }
    ranges.back().first = std::min(ranges.back().first, index);
    ranges.back().last = std::max(ranges.back().last, index);
    bytes += tensors[index].elements * element_bytes;
    is_open = bytes < (ranges.size() == 1 ? limits.first_bytes : limits.bytes);
  }
  return ranges;
}

std::vector<Bucket> stretches_of(std::span<const FlatTensor> tensors, std::int64_t flat_elements,
                                 const std::vector<TensorRange>& ranges) {
  std::vector<Bucket> stretches;
  for (const TensorRange& range : ranges) {
    const std::int64_t first = tensors[range.first].first;
    const std::int64_t end =
        range.last + 1 < tensors.size() ? tensors[range.last + 1].first : flat_elements;
    stretches.push_back({first, end - first});
  }
  return stretches;
}

}  // namespace

std::vector<Bucket> buckets_of(std::span<const FlatTensor> tensors, std::int64_t flat_elements,
                               std::int64_t element_bytes, const BucketLimits& limits) {
  return stretches_of(tensors, flat_elements, ranges_of(tensors, element_bytes, limits));
}

std::vector<Bucket> units_of(std::span<const FlatTensor> tensors, std::int64_t flat_elements) {
  std::vector<TensorRange> ranges;
  for (std::size_t index = tensors.size(); index-- > 0;) {
    if (ranges.empty() || tensors[index].unit != tensors[index + 1].unit)
      ranges.push_back({index, index});
    ranges.back().first = index;
  }
  return stretches_of(tensors, flat_elements, ranges);
}

}  // namespace stepgate
