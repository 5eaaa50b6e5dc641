// SPDX-License-Identifier: MIT
#include "plan/analyse/lifetimes.h"

#include <algorithm>
#include <compare>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "base/require.h"
#include "plan/analyse/access.h"
#include "plan/analyse/issue_order.h"
#include "plan/analyse/stays.h"

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
    Issued issued;  // time 0: never issued, which counts as over
    std::int64_t step = 0;
  };

  // Finds the operations that use each buffer that is not always live.
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
      if (uses_workspace(operation)) note_uses(index, workspaces);  // no operation names it
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

  // Called before an operation uses memory whose lifetime is tracked. Extends the lifetime of each
  // buffer that may still be in use, and forgets the others.
  void extend(int operation, int thread, std::int64_t step) {
    std::erase_if(maybe_in_use_[static_cast<std::size_t>(thread)],
                  [&](std::size_t index) { return !is_in_use(index, operation, thread, step); });
  }

  // Whether the buffer may still be in use. Once all its uses are over, that stays so until the
  // next use.
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

  // A buffer still in use in the next step is always live, and its memory cannot be shared.
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
  // For each thread, the lifetimes that may still be in use when the thread continues.
  std::vector<std::set<std::size_t>> maybe_in_use_;
};

// Extends live ranges of device memory so that unordered streams never use the same addresses. Each
// buffer that is not always live lasts until the last operation of the step, on any stream, that
// uses other such memory without waiting for the buffer's last use. A buffer that is still in use
// when a later step uses such memory becomes always live.
void extend_live_ranges(const StepPlan& plan, std::vector<Lifetime>& lifetimes) {
  StreamSafety(plan, lifetimes).establish();
}

bool is_kept(Purpose purpose) {
  switch (purpose) {
    case Purpose::weights:
    case Purpose::optimizer_state:
    case Purpose::batch:
    case Purpose::bookkeeping:
      return true;
    case Purpose::gradients:
    case Purpose::activations:
    case Purpose::workspace:
    case Purpose::staging:
      return false;
  }
  require(false, "every purpose lives somehow");
  return true;
}

struct Use {
  int operation;
  BufferAccess access;
};

// The written bytes of a buffer, as ranges that neither overlap nor touch.
class WrittenBytes {
 public:
  void add(std::int64_t from, std::int64_t to) {
    auto next = ranges_.upper_bound(from);
    if (next != ranges_.begin() && std::prev(next)->second >= from) {
      next = std::prev(next);
      from = next->first;
    }
    while (next != ranges_.end() && next->first <= to) {
      to = std::max(to, next->second);
      next = ranges_.erase(next);
    }
    ranges_.emplace_hint(next, from, to);
  }

  // The end of the written range that contains `from`, or `from` itself.
  std::int64_t up_to(std::int64_t from) const {
    const auto next = ranges_.upper_bound(from);
    return next == ranges_.begin() ? from : std::max(from, std::prev(next)->second);
  }

 private:
  std::map<std::int64_t, std::int64_t> ranges_;  // from, to
};

// The steps that an operation acts for.
struct ActsFor {
  std::int64_t every;
  std::int64_t turn;
  auto operator<=>(const ActsFor&) const = default;
};

// Whether the steps of `all` include those of `some`.
bool includes(const ActsFor& all, const ActsFor& some) {
  return some.every % all.every == 0 && some.turn % all.every == all.turn;
}

// The written bytes of a buffer, by the steps in which they are written.
using Written = std::map<ActsFor, WrittenBytes>;

// The end of the contiguous bytes from `from` on that are written before this operation reads.
std::int64_t written_up_to(const Written& written, std::int64_t from, const Operation& reader) {
  for (bool goes_on = true; goes_on;) {
    goes_on = false;
    for (const auto& [acts_for, bytes] : written) {
      if (!includes(acts_for, {reader.every, reader.turn})) continue;
      const std::int64_t to = bytes.up_to(from);
      goes_on = goes_on || to > from;
      from = to;
    }
  }
  return from;
}

class LifetimeFinder {
 public:
  explicit LifetimeFinder(const StepPlan& plan)
      : plan_(plan),
        operations_(static_cast<int>(plan.operations.size())),
        allocated_(stays_allocated(plan)),
        registered_(stays_registered(plan)),
        uses_(plan.buffers.size()) {
    for (int index = 0; index < operations_; ++index) {
      const Operation& operation = operation_at(index);
      for (const BufferAccess& access : accesses_of(plan, operation)) {
        uses_[static_cast<std::size_t>(access.use.buffer)].push_back({index, access});
      }
      if (uses_workspace(operation)) in_workspace_.push_back(index);
      if (operation.captured) captured_.push_back(index);
    }
  }

  std::vector<Lifetime> find_allocated() {
    for (int buffer = 0; buffer < std::ssize(plan_.buffers); ++buffer) {
      if (buffer_at(buffer).allocated_by != AllocatedBy::the_plan) find_allocated(buffer);
    }
    return std::move(found_.device);
  }

  Lifetimes find() {
    for (int buffer = 0; buffer < std::ssize(plan_.buffers); ++buffer) {
      if (takes_device_memory(buffer_at(buffer).memory)) {
        find_on_device(buffer);
      } else {
        find_pinned(buffer);
      }
    }
    return std::move(found_);
  }

 private:
  const Buffer& buffer_at(int index) const {
    return plan_.buffers[static_cast<std::size_t>(index)];
  }
  const Operation& operation_at(int index) const {
    return plan_.operations[static_cast<std::size_t>(index)];
  }
  const std::vector<Use>& uses_of(int buffer) const {
    return uses_[static_cast<std::size_t>(buffer)];
  }

  Lifetime always(int buffer, std::int64_t slots, LivenessReason because) const {
    const Buffer& described = buffer_at(buffer);
    const bool on_device = takes_device_memory(described.memory);
    const std::int64_t bytes = on_device ? in_blocks(described.bytes) : described.bytes;
    return {buffer, slots, slots * bytes, 0, std::max(operations_ - 1, 0), because};
  }
  Lifetime between(int buffer, int first, int last, LivenessReason because) const {
    Lifetime lifetime = always(buffer, 1, because);
    lifetime.first = first;
    lifetime.last = last;
    return lifetime;
  }

  void find_pinned(int buffer) {
    const Buffer& described = buffer_at(buffer);
    if (described.memory == MemoryKind::pageable) return;
    const Stays& stays = registered_[static_cast<std::size_t>(buffer)];
    if (stays.pairs.empty()) {
      found_.pinned.push_back(always(buffer, described.slots, LivenessReason::it_is_kept));
      return;
    }
    for (const auto& [lock, unlock] : stays.pairs) add_stay(found_.pinned, buffer, lock, unlock);
  }

  void find_on_device(int buffer) {
    const Buffer& described = buffer_at(buffer);
    if (described.allocated_by != AllocatedBy::the_plan) return find_allocated(buffer);
    found_.device.push_back(is_kept(described.purpose)
                                ? always(buffer, described.slots, LivenessReason::it_is_kept)
                                : of_its_uses(buffer));
  }

  void find_allocated(int buffer) {
    const Stays& stays = allocated_[static_cast<std::size_t>(buffer)];
    const bool stays_over_steps = stays.pairs.empty() && stays.unmatched.empty();
    if (stays_over_steps && !uses_of(buffer).empty())
      found_.device.push_back(always(buffer, 1, LivenessReason::it_spans_steps));
    for (const auto& [take, give] : stays.pairs) add_stay(found_.device, buffer, take, give);
    for (const int take : stays.unmatched) {
      found_.device.push_back(
          between(buffer, take, operations_ - 1, LivenessReason::it_is_never_released));
    }
  }

  // Adds the lifetime of a slot that one operation allocates for a step and another releases for
  // the same step. Both may be issued in different steps of the host, and several slots may be in
  // use at once.
  void add_stay(std::vector<Lifetime>& to, int buffer, int take, int give) const {
    const std::int64_t steps = operation_at(take).ahead - operation_at(give).ahead;
    std::int64_t length = steps * operations_ + (give - take);
    // The release comes first: it belongs to an earlier use of the slot.
    while (length < 0) length += buffer_at(buffer).slots * operations_;
    std::int64_t slots_always = length / operations_;
    const auto last = take + static_cast<int>(length % operations_);
    if (last >= operations_) ++slots_always;  // it extends into the next step
    if (slots_always > 0)
      to.push_back(always(buffer, slots_always, LivenessReason::it_spans_steps));
    if (last < operations_)
      to.push_back(between(buffer, take, last, LivenessReason::it_is_allocated));
  }

  Lifetime of_its_uses(int buffer) const {
    const std::vector<Use>& uses = uses_of(buffer);
    const std::int64_t slots = buffer_at(buffer).slots;
    if (uses.empty()) {
      const bool shared = buffer_at(buffer).purpose == Purpose::workspace && !in_workspace_.empty();
      if (!shared) return always(buffer, slots, LivenessReason::nobody_names_it);
      return through_the_graph(
          between(buffer, in_workspace_.front(), in_workspace_.back(), LivenessReason::it_is_used));
    }
    const int ahead = operation_at(uses.front().operation).ahead;
    const bool spans = std::any_of(uses.begin(), uses.end(), [&](const Use& use) {
      return operation_at(use.operation).ahead != ahead;
    });
    if (spans) return always(buffer, slots, LivenessReason::it_spans_steps);
    if (reads_before_writing(uses))
      return always(buffer, slots, LivenessReason::it_is_carried_over);
    return through_the_graph(
        between(buffer, uses.front().operation, uses.back().operation, LivenessReason::it_is_used));
  }

  bool reads_before_writing(const std::vector<Use>& uses) const {
    Written written;
    for (auto use = uses.begin(); use != uses.end();) {
      // An operation reads its operands before it writes.
      const auto same = [&](const Use& other) { return other.operation != use->operation; };
      const auto end = std::find_if(use, uses.end(), same);
      const Operation& operation = operation_at(use->operation);
      for (auto read = use; read != end; ++read) {
        if (read->access.access == Access::write) continue;
        const BufferUse& range = read->access.use;
        if (written_up_to(written, range.offset_bytes, operation) <
            range.offset_bytes + range.bytes)
          return true;
      }
      for (; use != end; ++use) {
        if (use->access.access == Access::read) continue;
        const BufferUse& range = use->access.use;
        written[{operation.every, operation.turn}].add(range.offset_bytes,
                                                       range.offset_bytes + range.bytes);
      }
    }
    return false;
  }

  Lifetime through_the_graph(Lifetime lifetime) const {
    if (captured_.empty()) return lifetime;
    const bool touches = lifetime.first <= captured_.back() && lifetime.last >= captured_.front();
    if (!touches) return lifetime;
    lifetime.first = std::min(lifetime.first, captured_.front());
    lifetime.last = std::max(lifetime.last, captured_.back());
    lifetime.because = LivenessReason::the_graph_uses_it;
    return lifetime;
  }

  const StepPlan& plan_;
  int operations_;
  std::vector<Stays> allocated_;  // by buffer
  std::vector<Stays> registered_;
  std::vector<std::vector<Use>> uses_;  // by buffer, in issue order
  std::vector<int> in_workspace_;
  std::vector<int> captured_;
  Lifetimes found_;
};

}  // namespace

std::string_view in_words(LivenessReason because) {
  switch (because) {
    case LivenessReason::it_is_kept:
      return "kept from step to step";
    case LivenessReason::it_is_carried_over:
      return "read before the step writes it";
    case LivenessReason::it_spans_steps:
      return "used across steps";
    case LivenessReason::nothing_orders_it:
      return "not over when another stream goes on";
    case LivenessReason::nobody_names_it:
      return "no operation names it";
    case LivenessReason::it_is_used:
      return "from its first to its last use";
    case LivenessReason::the_graph_uses_it:
      return "through the graph";
    case LivenessReason::it_is_allocated:
      return "from its allocation to its release";
    case LivenessReason::it_is_never_released:
      return "never released";
  }
  require(false, "every reason has words");
  return {};
}

Lifetimes lifetimes_of(const StepPlan& plan) {
  Lifetimes found = LifetimeFinder(plan).find();
  extend_live_ranges(plan, found.device);
  return found;
}

std::vector<Lifetime> allocated_lifetimes_of(const StepPlan& plan) {
  const bool any = std::ranges::any_of(plan.buffers, [](const Buffer& buffer) {
    return buffer.allocated_by != AllocatedBy::the_plan;
  });
  if (!any) return {};  // most steps have none, and this runs at every load
  return LifetimeFinder(plan).find_allocated();
}

double growth_bytes_per_step(const StepPlan& plan) {
  std::map<std::int64_t, std::int64_t> grows;  // bytes by the operations' period in steps
  for (const Operation& operation : plan.operations) {
    if (const auto* allocate = std::get_if<Allocate>(&operation.action)) {
      grows[operation.every] += plan.buffers[static_cast<std::size_t>(allocate->buffer)].bytes;
    } else if (const auto* release = std::get_if<Release>(&operation.action)) {
      grows[operation.every] -= plan.buffers[static_cast<std::size_t>(release->buffer)].bytes;
    }
  }
  double a_step = 0;
  for (const auto& [every, bytes] : grows)
    a_step += static_cast<double>(bytes) / static_cast<double>(every);
  return a_step;
}

}  // namespace stepgate
