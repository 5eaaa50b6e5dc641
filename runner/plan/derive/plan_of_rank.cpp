// SPDX-License-Identifier: MIT
#include "plan/derive/plan_of_rank.h"

#include "support/require.h"

namespace stepgate {
namespace {

struct MovedUses {
  int rank;

  void move(BufferUse& use) const {
    use.offset_bytes += rank * use.rank_stride_bytes;
    use.rank_stride_bytes = 0;
  }

  void operator()(LaunchKernel& launch) const {
    for (BufferUse& use : launch.operands) move(use);
  }
  void operator()(CopyBytes& copy) const {
    move(copy.to);
    move(copy.from);
  }
  void operator()(HostCopies& copy) const {
    move(copy.to);
    move(copy.from);
  }
  void operator()(FillZero& fill) const { move(fill.what); }
  void operator()(Prefetch& prefetch) const { move(prefetch.what); }
  void operator()(Collective& collective) const {
    move(collective.from);
    move(collective.to);
  }
  void operator()(HostWork& work) const {
    if (work.rank && *work.rank != rank) work.nanoseconds = 0;
  }
  void operator()(Allocate&) const {}
  void operator()(Release&) const {}
  void operator()(EmptyCache&) const {}
  void operator()(RegisterHost&) const {}
  void operator()(UnregisterHost&) const {}
  void operator()(RecordEvent&) const {}
  void operator()(StreamWaitsEvent&) const {}
  void operator()(HostWaits&) const {}
  void operator()(TakeBatch&) const {}
};

}  // namespace

StepPlan plan_of_rank(StepPlan plan, int rank) {
  require(rank >= 0 && rank < plan.ranks.count, "a plan has this rank");
  const MovedUses moved{rank};
  for (Operation& operation : plan.operations) {
    std::visit(moved, operation.action);
    for (BufferUse& use : operation.keeps) moved.move(use);
  }
  for (Buffer& buffer : plan.buffers) {
    for (RankPiece& piece : buffer.pieces) {
      piece.first += rank * piece.rank_stride;
      piece.rank_stride = 0;
    }
    if (buffer.content == Content::payload)
      buffer.first_number = rank * (buffer.bytes / bytes_of(DType::fp32));
  }
  plan.ranks.rank = rank;
  return plan;
}

}  // namespace stepgate
