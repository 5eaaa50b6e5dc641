// SPDX-License-Identifier: MIT
#include "plan/analyse/find_races.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <vector>

#include "plan/analyse/access.h"
#include "plan/analyse/issue_order.h"

namespace stepgate {
namespace {

struct PastAccess {
  Access access;
  Issued issued;
  std::size_t operation;
  std::int64_t step;
};

// The earlier accesses to a slot of a buffer that may race with later ones, by byte ranges. Each
// range ends where the next begins, and its accesses touched all of its bytes. So an access is
// compared only with accesses that it overlaps: all weights are one buffer, and most operations
// touch a part.
class PastOfSlot {
 public:
  using Parts = std::map<std::int64_t, std::vector<PastAccess>>;  // by their first byte

  // Returns the range that begins with this byte, splitting one if necessary.
  Parts::iterator cut(std::int64_t byte) {
    const auto next = parts_.upper_bound(byte);
    const auto part = std::prev(next);
    return part->first == byte ? part : parts_.emplace_hint(next, byte, part->second);
  }

 private:
  Parts parts_{{0, {}}};
};

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
      if (access.use.bytes == 0) continue;
      const Buffer& buffer = plan_.buffers[static_cast<std::size_t>(access.use.buffer)];
      const PastAccess now{access.access, issued, index, step};
      PastOfSlot& slot = slot_of(access.use.buffer, step % buffer.slots);
      const auto end = slot.cut(access.use.offset_bytes + access.use.bytes);
      for (auto part = slot.cut(access.use.offset_bytes); part != end; ++part) {
        if (const PastAccess* earlier = unordered(now, part->second))
          return describe(now, *earlier, buffer.name);
        record(now, part->second);
      }
    }
  }

  // The first conflicting access that may not be complete; nullptr if there is none.
  const PastAccess* unordered(const PastAccess& now, const std::vector<PastAccess>& past) const {
    const auto found = std::ranges::find_if(past, [&](const PastAccess& earlier) {
      const bool conflict = now.access != Access::read || earlier.access != Access::read;
      return conflict && !order_.is_over(earlier.issued, now.issued.thread);
    });
    return found == past.end() ? nullptr : &*found;
  }

  // Drops the accesses that are ordered before this one: what is ordered after this is ordered
  // after them too.
  void record(const PastAccess& now, std::vector<PastAccess>& past) const {
    std::erase_if(past, [&](const PastAccess& earlier) {
      const bool same_kind = now.access != Access::read || earlier.access == Access::read;
      return same_kind && order_.is_over(earlier.issued, now.issued.thread);
    });
    past.push_back(now);
  }

  PastOfSlot& slot_of(int buffer, std::int64_t slot) {
    std::vector<PastOfSlot>& slots = past_[static_cast<std::size_t>(buffer)];
    if (std::ssize(slots) <= slot) slots.resize(static_cast<std::size_t>(slot) + 1);
    return slots[static_cast<std::size_t>(slot)];
  }

  std::string name_of_thread(int thread) const {
    if (thread == order_.host_thread()) return "the host";
    if (thread > order_.host_thread()) return "a branch of the graph";
    return "the " + stream_at(plan_, thread).name + " stream";
  }

  void describe(const PastAccess& later, const PastAccess& earlier, const std::string& buffer) {
    const auto side = [&](const PastAccess& access) {
      return "'" + plan_.operations[access.operation].name + "' of step " +
             std::to_string(access.step) + " on " + name_of_thread(access.issued.thread);
    };
    race_ = side(later) + " and " + side(earlier) + " both touch '" + buffer +
            "', and nothing orders them";
  }

  const StepPlan& plan_;
  IssueOrder order_;
  std::vector<std::vector<BufferAccess>> accesses_;
  std::vector<std::vector<PastOfSlot>> past_;  // by buffer, then slot
  std::optional<std::string> race_;
};

}  // namespace

std::optional<std::string> find_race(const StepPlan& plan) {
  return RaceFinder(plan).find();
}

}  // namespace stepgate
