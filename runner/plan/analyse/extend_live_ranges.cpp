// SPDX-License-Identifier: MIT
#include "plan/analyse/extend_live_ranges.h"

#include <algorithm>
#include <optional>
#include <set>

#include "plan/analyse/access.h"
#include "plan/analyse/issue_order.h"

namespace stepgate {
namespace {

class StreamSafety {
 public:
  StreamSafety(const StepPlan& plan, std::vector<Lifetime>& lifetimes)
      : plan_(plan), lifetimes_(lifetimes), order_(plan), used_by_(plan.operations.size()) {
    note_uses();
    const auto threads = static_cast<std::size_t>(order_.threads());
    last_uses_.assign(lifetimes.size(), std::vector<LastUse>(threads));
    maybe_in_use_.resize(threads);
  }

  void establish() {
    if (on_one_stream()) return;
    const std::int64_t steps = steps_until_repeated(plan_);
    for (std::int64_t step = -prefetch_depth(plan_); step < steps; ++step) {
      for (std::size_t index = 0; index < plan_.operations.size(); ++index) {
        const Operation& operation = plan_.operations[index];
        const std::int64_t acted_for = step + operation.ahead;
        if (!acts_for(operation, acted_for)) continue;
        const Issued issued = order_.issue(operation, acted_for);
        if (used_by_[index].empty()) continue;
        extend(static_cast<int>(index), issued.thread, step);
        for (const std::size_t lifetime : used_by_[index]) {
          auto& uses = last_uses_[lifetime];
          uses[static_cast<std::size_t>(issued.thread)] = {issued, step};
          for (std::set<std::size_t>& of_thread : maybe_in_use_) of_thread.insert(lifetime);
        }
      }
    }
  }

 private:
  struct LastUse {
    Issued issued;  // at time 0: never, which is always over
    std::int64_t step = 0;
  };

  // Notes which operations use each buffer that does not live always.
  void note_uses() {
    std::vector<std::vector<std::size_t>> by_buffer(plan_.buffers.size());
    std::vector<std::size_t> workspaces;
    for (std::size_t index = 0; index < lifetimes_.size(); ++index) {
      const Lifetime& live = lifetimes_[index];
      if (live.always()) continue;
      by_buffer[static_cast<std::size_t>(live.buffer)].push_back(index);
      if (buffer_at(plan_, live.buffer).purpose == Purpose::workspace) workspaces.push_back(index);
    }
    for (int index = 0; index < std::ssize(plan_.operations); ++index) {
      const Operation& operation = operation_at(plan_, index);
      for (const BufferAccess& access : accesses_of(plan_, operation))
        note_uses(index, by_buffer[static_cast<std::size_t>(access.use.buffer)]);
      if (uses_workspace(operation)) note_uses(index, workspaces);  // which it does not name
    }
  }

  void note_uses(int operation, const std::vector<std::size_t>& lifetimes) {
    for (const std::size_t index : lifetimes) {
      const Lifetime& live = lifetimes_[index];
      if (live.first <= operation && operation <= live.last)
        used_by_[static_cast<std::size_t>(operation)].push_back(index);
    }
  }

  bool on_one_stream() const {
    std::optional<int> only;
    for (std::size_t index = 0; index < used_by_.size(); ++index) {
      if (used_by_[index].empty()) continue;
      const int stream = plan_.operations[index].stream;
      if (only && *only != stream) return false;
      only = stream;
    }
    return true;
  }

  // This operation is about to use such memory: who may still be using theirs?
  void extend(int operation, int thread, std::int64_t step) {
    std::erase_if(maybe_in_use_[static_cast<std::size_t>(thread)],
                  [&](std::size_t index) { return !is_in_use(index, operation, thread, step); });
  }

  // Not, where all that used it is over: it stays so until it is used again.
  bool is_in_use(std::size_t index, int operation, int thread, std::int64_t step) {
    Lifetime& live = lifetimes_[index];
    bool is = false;
    for (const LastUse& use : last_uses_[index]) {
      if (live.always()) return false;
      if (order_.is_over(use.issued, thread)) continue;
      is = true;
      if (use.step == step) {
        live.last = std::max(live.last, operation);
      } else {
        live = kept_over_steps(live);
      }
    }
    return is;
  }

  // Such memory cannot be shared at all.
  Lifetime kept_over_steps(Lifetime live) const {
    const Buffer& buffer = plan_.buffers[static_cast<std::size_t>(live.buffer)];
    if (buffer.allocated_by == AllocatedBy::the_plan) {
      live.slots = buffer.slots;
      live.bytes = buffer.slots * in_blocks(buffer.bytes);
    }
    live.first = 0;
    live.last = static_cast<int>(plan_.operations.size()) - 1;
    live.because = LivenessReason::nothing_orders_it;
    return live;
  }

  const StepPlan& plan_;
  std::vector<Lifetime>& lifetimes_;
  IssueOrder order_;
  std::vector<std::vector<std::size_t>> used_by_;  // by operation
  std::vector<std::vector<LastUse>> last_uses_;    // by lifetime, then thread
  // By thread: lifetimes that something may still use when the thread goes on.
  std::vector<std::set<std::size_t>> maybe_in_use_;
};

}  // namespace

void extend_live_ranges(const StepPlan& plan, std::vector<Lifetime>& lifetimes) {
  StreamSafety(plan, lifetimes).establish();
}

}  // namespace stepgate
