// SPDX-License-Identifier: MIT
// The host side of the reference device: it issues the plan's operations in program order, one at a
// time, and knows whether the host may go on. The device chooses whether the host or a stream moves
// next.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <span>
#include <utility>
#include <vector>

#include "device/audit.h"
#include "device/gradients.h"
#include "device/reference/rank_meetings.h"
#include "device/reference/slot_memory.h"
#include "device/reference/stream_queues.h"
#include "plan/step_plan.h"

namespace stepgate {

class HostThread {
 public:
  // The arguments belong to one rank of the plan, and all outlive this object.
  HostThread(const StepPlan&, SlotMemory&, StreamQueues&, RankMeetings&, std::int64_t first_step);

  // Lets the host issue the steps before `end`. The first call also issues operations that act
  // ahead of the first step.
  void run_until(std::int64_t end) { end_ = end; }

  // Adds the gradients of this step to `sketches`, in the order of the plan's parameters, as the
  // streams reach them. The sketches outlive the step's work.
  void sketch_gradients(std::int64_t step, std::vector<GradientSketch>* sketches) {
    sketched_step_ = step;
    sketches_ = sketches;
  }

  // Audits these launches when they act for this step; `found` outlives the step's work.
  void audit(std::int64_t step, std::vector<int> operations, std::vector<LaunchAudit>* found) {
    audited_step_ = step;
    audited_ = std::move(operations);
    audits_ = found;
  }

  bool finished() const { return step_ >= end_; }

  // Whether the host is not waiting for anything.
  bool may_go_on() const { return !waits_until_ || waits_until_(); }

  // Issues the next operation, or passes the next boundary between steps.
  void go_on();

 private:
  using Condition = std::function<bool()>;

  void begin_step();
  void sketch(const Operation&);
  bool is_audited() const;
  void carry_out(const Operation&, std::int64_t step_acted_for);

  void act(const LaunchKernel&);
  void act(const CopyBytes&);
  void act(const FillZero&);
  void act(const HostCopies&);
  void act(const Prefetch&);
  void act(const Allocate&);
  void act(const Release&);
  void act(const EmptyCache&) {}  // changes no number
  void act(const RegisterHost&);
  void act(const UnregisterHost&);
  void act(const RecordEvent&);
  void act(const StreamWaitsEvent&);
  void act(const HostWaits&);
  void act(const TakeBatch&) {}  // the batch already lies in its slot
  void act(const HostWork&) {}   // takes time, which is not known here
  void act(const Collective&);

  SharedMark issue(std::function<void()> work, SharedMark after = nullptr);
  SharedMark& last_record(int event);
  void wait_for(const SharedMark&);
  void wait_for_device();

  // The block of the use's slot, and the bytes within it.
  struct Region {
    SharedBlock block;
    std::int64_t offset;
    std::int64_t bytes;
    std::byte* begin() const { return block->data() + offset; }
  };
  Region region_of(const BufferUse&) const;

  const StepPlan* plan_;
  SlotMemory* memory_;
  StreamQueues* queues_;
  RankMeetings* meetings_;
  std::vector<std::vector<SharedMark>> records_;  // [event][slot]: mark of the last record
  std::deque<std::int64_t> compute_issued_;  // work issued to the compute stream by the end of each
                                             // step not yet waited for

  std::int64_t first_step_;
  std::int64_t step_;  // the step that the host is at; below first_step_ for prefetches
  std::int64_t end_ = 0;
  std::size_t next_operation_ = 0;
  std::int64_t sketched_step_ = -1;
  std::vector<GradientSketch>* sketches_ = nullptr;  // null: no gradients are requested
  Condition waits_until_;                            // empty: the host does not wait
  std::function<void()> after_wait_;                 // called when the wait is over

  std::int64_t audited_step_ = -1;
  std::vector<int> audited_;                    // operations, ascending
  std::vector<LaunchAudit>* audits_ = nullptr;  // null: nothing is audited

  // Stream and step of the operation being issued.
  int stream_ = compute_stream;
  std::int64_t acts_for_ = 0;
};

}  // namespace stepgate
