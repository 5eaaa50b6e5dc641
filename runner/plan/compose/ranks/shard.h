// SPDX-License-Identifier: MIT
// How several ranks share a model: the buckets of gradients that are reduced together, and the
// pieces of the flat buffers that one rank updates.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "plan/compose/ranks/buckets.h"
#include "plan/compose/step_builder.h"
#include "scenario/scenario.h"

namespace stepgate {

// The stream of all collectives. If gathers of weights have their own communicator,
// gathering_stream is another stream.
int communication_stream(StepBuilder&);
int gathering_stream(StepBuilder&, const Knobs&);

// Whether a rank updates only its part of the parameters.
constexpr bool shards_the_update(const Knobs& knobs) {
  return knobs.ranks.count > 1 && knobs.ranks.shard != Shard::none;
}

// Whether a rank keeps only its part of the gradients, or below of the weights.
constexpr bool shards_gradients(const Knobs& knobs) {
  return shards_the_update(knobs) && knobs.ranks.shard != Shard::optimizer;
}
constexpr bool shards_weights(const Knobs& knobs) {
  return shards_the_update(knobs) && knobs.ranks.shard == Shard::parameters;
}

// Whether the gradients of every part of a batch are reduced apart, and a rank adds up its part of
// them. Otherwise gradients add up before they are reduced.
constexpr bool reduces_every_part_apart(const Knobs& knobs) {
  return shards_gradients(knobs) && knobs.batch.accumulate > 1 && knobs.ranks.sync_each_part;
}

// The buckets that 'ranks' requests; with sharded weights one for each unit. Tensors are in the
// order of the forward pass.
std::vector<Bucket> gradient_buckets(const Knobs&, std::span<const FlatTensor> tensors,
                                     std::int64_t flat_elements);

// A piece of the flat parameter buffers that this rank updates. In buffers with only the rank's
// pieces it starts at element `packed`. Without sharding it covers the whole buffer.
struct UpdatedPiece {
  RankPiece flat;
  std::int64_t packed = 0;
  Bucket bucket;  // bucket of which this is the rank's part
};
std::vector<UpdatedPiece> updated_pieces(const Knobs&, std::span<const FlatTensor> tensors,
                                         std::int64_t flat_elements);

}  // namespace stepgate
