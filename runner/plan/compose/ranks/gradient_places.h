// SPDX-License-Identifier: MIT
// Where the backward pass leaves the gradients of a bucket: in the flat buffer of all, or, where a
// rank keeps only its part of them, in memory that the bucket has until it is reduced.
#pragma once

#include <cstdint>
#include <vector>

#include "plan/compose/build_model.h"
#include "plan/compose/ranks/buckets.h"

namespace stepgate {

// A stretch of the flat buffer as it would be, and the buffer that has it.
struct GradientPlace {
  Bucket stretch;
  int buffer = 0;
};

// In the order of the flat buffer: one place for each bucket, but for neighbours that one operand
// of a kernel reaches over, such as the weight and the bias of a norm, which have one together.
// Moves what the operations from `first` on do with `gradients` there, and leaves that buffer as
// large as a rank's part of all buckets.
std::vector<GradientPlace> give_buckets_their_own(StepBuilder&, const LearnedParts&,
                                                  std::vector<Bucket>, std::size_t first,
                                                  std::int64_t ranks);

// The place that has the bucket.
const GradientPlace& place_of(const std::vector<GradientPlace>&, const Bucket&);

}  // namespace stepgate
