// SPDX-License-Identifier: MIT
#include "plan/derive/plan_of_rank.h"

#include "base/random.h"
#include "base/require.h"
#include "plan/analyse/operation_uses.h"

namespace stepgate {
StepPlan plan_of_rank(StepPlan plan, int rank) {
  require(rank >= 0 && rank < plan.ranks.count, "a plan has this rank");
  const auto move_to_rank = [rank](BufferUse& use) {
    use.offset_bytes += rank * use.rank_stride_bytes;
    use.rank_stride_bytes = 0;
  };
  const auto take_piece = [rank](RankPiece& piece) {
    piece.first += rank * piece.rank_stride;
    piece.rank_stride = 0;
  };
  for (Operation& operation : plan.operations) {
    for_each_use(operation, move_to_rank);
    if (operation.reads_gradients) take_piece(operation.reads_gradients->flat);
    auto* work = std::get_if<HostWork>(&operation.action);
    if (work && work->rank && *work->rank != rank) work->nanoseconds = 0;
    if (work) work->seed = random_bits(work->seed, static_cast<std::uint64_t>(rank));
  }
  for (Buffer& buffer : plan.buffers) {
    for (RankPiece& piece : buffer.pieces) take_piece(piece);
    if (buffer.content == Content::payload)
      buffer.first_number = rank * (buffer.bytes / bytes_of(DType::fp32));
  }
  plan.ranks.rank = rank;
  return plan;
}

}  // namespace stepgate
