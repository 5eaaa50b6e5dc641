// SPDX-License-Identifier: MIT
#include "plan/analyse/find_races.h"

#include <algorithm>
#include <vector>

#include "plan/analyse/access.h"
#include "plan/analyse/issue_order.h"

namespace stepgate {
namespace {

struct PastAccess {
  BufferAccess access;
  Issued issued;
  std::size_t operation;
  std::int64_t step;
};

bool overlap(const BufferUse& a, const BufferUse& b) {
  return a.offset_bytes < b.offset_bytes + b.bytes && b.offset_bytes < a.offset_bytes + a.bytes;
}

class RaceFinder {
 public:
  explicit RaceFinder(const StepPlan& plan)
      : plan_(plan), order_(plan), past_(plan.buffers.size()) {
    for (const Operation& operation : plan.operations)
      accesses_.push_back(accesses_of(plan, operation));
  }

  std::optional<std::string> find() {
    const int ahead = prefetch_depth(plan_);
    for (std::int64_t step = -ahead; step < steps_until_repeated(plan_); ++step) {
      for (std::size_t index = 0; index < plan_.operations.size(); ++index) {
        const Operation& operation = plan_.operations[index];
        const std::int64_t acted_for = step + operation.ahead;
        if (!acts_for(operation, acted_for)) continue;
        record_accesses(index, order_.issue(plan_.operations[index], acted_for), acted_for);
        if (race_) return race_;
      }
    }
    return std::nullopt;
  }

 private:
  void record_accesses(std::size_t index, const Issued& issued, std::int64_t step) {
    for (const BufferAccess& access : accesses_[index]) {
      const Buffer& buffer = plan_.buffers[static_cast<std::size_t>(access.use.buffer)];
      std::vector<PastAccess>& past = past_of(access.use.buffer, step % buffer.slots);
      const bool writes = access.access != Access::read;
      for (const PastAccess& earlier : past) {
        const bool earlier_writes = earlier.access.access != Access::read;
        const bool conflict = (writes || earlier_writes) && overlap(access.use, earlier.access.use);
        const bool ordered = order_.is_over(earlier.issued, issued.thread);
        if (conflict && !ordered) return describe(index, issued.thread, step, earlier);
      }
      // Whatever comes later and is ordered after this access is ordered after these too.
      std::erase_if(past, [&](const PastAccess& earlier) {
        const bool same_kind = writes || earlier.access.access == Access::read;
        const bool ordered = order_.is_over(earlier.issued, issued.thread);
        return same_kind && ordered && covers(access.use, earlier.access.use);
      });
      past.push_back({access, issued, index, step});
    }
  }

  std::vector<PastAccess>& past_of(int buffer, std::int64_t slot) {
    std::vector<std::vector<PastAccess>>& slots = past_[static_cast<std::size_t>(buffer)];
    if (std::ssize(slots) <= slot) slots.resize(static_cast<std::size_t>(slot) + 1);
    return slots[static_cast<std::size_t>(slot)];
  }

  static bool covers(const BufferUse& outer, const BufferUse& inner) {
    return outer.offset_bytes <= inner.offset_bytes &&
           outer.offset_bytes + outer.bytes >= inner.offset_bytes + inner.bytes;
  }

  std::string name_of_thread(int thread) const {
    if (thread == order_.host_thread()) return "the host";
    if (thread > order_.host_thread()) return "a branch of the graph";
    return "the " + stream_at(plan_, thread).name + " stream";
  }

  void describe(std::size_t index, int thread, std::int64_t step, const PastAccess& earlier) {
    const Operation& later_operation = plan_.operations[index];
    const Operation& earlier_operation = plan_.operations[earlier.operation];
    const auto side = [&](const Operation& operation, int on, std::int64_t of) {
      return "'" + operation.name + "' of step " + std::to_string(of) + " on " + name_of_thread(on);
    };
    race_ = side(later_operation, thread, step) + " and " +
            side(earlier_operation, earlier.issued.thread, earlier.step) + " both touch '" +
            plan_.buffers[static_cast<std::size_t>(earlier.access.use.buffer)].name +
            "', and nothing orders them";
  }

  const StepPlan& plan_;
  IssueOrder order_;
  std::vector<std::vector<BufferAccess>> accesses_;
  std::vector<std::vector<std::vector<PastAccess>>> past_;  // by buffer, then slot
  std::optional<std::string> race_;
};

}  // namespace

std::optional<std::string> find_race(const StepPlan& plan) {
  return RaceFinder(plan).find();
}

}  // namespace stepgate
