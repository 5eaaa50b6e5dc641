// SPDX-License-Identifier: MIT
#include "plan/compose/ranks/shard.h"

#include "base/require.h"

namespace stepgate {

int communication_stream(StepBuilder& builder) {
  return builder.add_stream({.name = "communication", .kind = StreamKind::non_blocking});
}

int gathering_stream(StepBuilder& builder, const Knobs& knobs) {
  if (knobs.ranks.communicators == 1) return communication_stream(builder);
  return builder.add_stream({.name = "communication 2", .kind = StreamKind::non_blocking});
}

std::vector<Bucket> gradient_buckets(const Knobs& knobs, std::span<const FlatTensor> tensors,
                                     std::int64_t flat_elements) {
  if (shards_weights(knobs)) return units_of(tensors, flat_elements);
  const RanksKnobs& ranks = knobs.ranks;
  return buckets_of(tensors, flat_elements, bytes_of(knobs.model.dtype),
                    {.first_bytes = ranks.first_bucket_bytes.value_or(ranks.bucket_bytes),
                     .bytes = ranks.bucket_bytes,
                     .order = ranks.bucket_order});
}

std::vector<UpdatedPiece> updated_pieces(const Knobs& knobs, std::span<const FlatTensor> tensors,
                                         std::int64_t flat_elements) {
  if (!shards_the_update(knobs))
    return {{.flat = {.elements = flat_elements}, .bucket = {.elements = flat_elements}}};
  std::vector<UpdatedPiece> pieces;
  std::int64_t packed = 0;
  for (const Bucket& bucket : gradient_buckets(knobs, tensors, flat_elements)) {
    require(bucket.elements % knobs.ranks.count == 0, "ranks have equal parts of every bucket");
    const std::int64_t part = bucket.elements / knobs.ranks.count;
    pieces.push_back({.flat = {bucket.first, part, part}, .packed = packed, .bucket = bucket});
    packed += part;
  }
  return pieces;
}

}  // namespace stepgate
