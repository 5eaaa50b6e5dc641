// SPDX-License-Identifier: MIT
#include "plan/find_races.h"

#include <algorithm>
#include <array>
#include <vector>

#include "plan/access.h"
#include "support/require.h"

namespace stepgate {
namespace {

// The streams, then the host.
constexpr int threads = stream_count + 1;
constexpr int host_thread = stream_count;

using Clock = std::array<std::int64_t, threads>;

void join(Clock& clock, const Clock& other) {
  for (int thread = 0; thread < threads; ++thread)
    clock[thread] = std::max(clock[thread], other[thread]);
}

struct PastAccess {
  BufferAccess access;
  int thread;
  std::int64_t time;  // of that thread
  std::size_t operation;
  std::int64_t step;
};

const char* name_of(int thread) {
  constexpr std::array<const char*, threads> names = {"the compute stream", "the side stream",
                                                      "the legacy stream", "the host"};
  return names[static_cast<std::size_t>(thread)];
}

bool overlap(const BufferUse& a, const BufferUse& b) {
  return a.offset_bytes < b.offset_bytes + b.bytes && b.offset_bytes < a.offset_bytes + a.bytes;
}

class RaceFinder {
 public:
  explicit RaceFinder(const StepPlan& plan) : plan_(plan), past_(plan.buffers.size()) {
    for (const Operation& operation : plan.operations)
      accesses_.push_back(accesses_of(plan, operation));
    for (const Event& event : plan.events)
      events_.emplace_back(static_cast<std::size_t>(event.slots));
  }

  std::optional<std::string> find() {
    const int ahead = furthest_ahead(plan_);
    for (std::int64_t step = -ahead; step < steps_to_repeat(); ++step) {
      for (std::size_t index = 0; index < plan_.operations.size(); ++index) {
        const Operation& operation = plan_.operations[index];
        const std::int64_t acted_for = step + operation.ahead;
        if (!acts_for(operation, acted_for)) continue;
        issue(index, acted_for);
        if (race_) return race_;
      }
    }
    return std::nullopt;
  }

 private:
  // Long enough that every slot is used again after every other and every rare operation has
  // happened twice, but not longer than a plan is worth.
  std::int64_t steps_to_repeat() const {
    std::int64_t longest = 2;
    for (const Buffer& buffer : plan_.buffers)
      longest = std::max(longest, std::min<std::int64_t>(buffer.slots, 8));
    for (const Operation& operation : plan_.operations)
      longest = std::max(longest, operation.every);
    return std::min<std::int64_t>(2 * longest + 1, 200);
  }

  void issue(std::size_t index, std::int64_t step) {
    const Operation& operation = plan_.operations[index];
    const int stream = static_cast<int>(operation.stream);
    Clock& host = clocks_[host_thread];
    ++host[host_thread];
    if (runs_on_host(operation)) {
      wait_on_host(operation, step);
      record_accesses(index, host_thread, step);
      return;
    }
    enqueue(stream);
    if (const auto* record = std::get_if<RecordEvent>(&operation.action)) {
      event_at(record->event, step) = clocks_[stream];
    } else if (const auto* wait = std::get_if<StreamWaitsEvent>(&operation.action)) {
      join(clocks_[stream], event_at(wait->event, step));
    }
    record_accesses(index, stream, step);
    if (const auto* copy = std::get_if<CopyBytes>(&operation.action)) {
      if (copy->host_waits || is_pageable(plan_, *copy)) join(host, clocks_[stream]);
    }
    if (const auto* release = std::get_if<Release>(&operation.action)) {
      const Buffer& buffer = plan_.buffers[static_cast<std::size_t>(release->buffer)];
      if (buffer.allocated_by == AllocatedBy::cuda) join_everything(host);
    }
  }

  // The order that the legacy stream brings: it waits for the compute stream and the compute stream
  // for it.
  void enqueue(int stream) {
    constexpr int compute = static_cast<int>(StreamName::compute);
    constexpr int legacy = static_cast<int>(StreamName::legacy);
    Clock& clock = clocks_[stream];
    join(clock, clocks_[host_thread]);
    if (stream == compute) join(clock, clocks_[legacy]);
    if (stream == legacy) join(clock, clocks_[compute]);
    ++clock[stream];
  }

  static bool runs_on_host(const Operation& operation) {
    return std::holds_alternative<HostWaits>(operation.action) ||
           std::holds_alternative<TakeBatch>(operation.action) ||
           std::holds_alternative<HostWork>(operation.action) ||
           std::holds_alternative<HostCopies>(operation.action) ||
           std::holds_alternative<PageLock>(operation.action) ||
           std::holds_alternative<PageUnlock>(operation.action);
  }

  void wait_on_host(const Operation& operation, std::int64_t step) {
    const auto* waits = std::get_if<HostWaits>(&operation.action);
    if (!waits) return;
    Clock& host = clocks_[host_thread];
    switch (waits->what) {
      case WaitFor::device:
        return join_everything(host);
      case WaitFor::stream:
        return join(host, clocks_[static_cast<int>(operation.stream)]);
      case WaitFor::event:
      case WaitFor::poll:
        return join(host, event_at(waits->event, step));
    }
  }

  void join_everything(Clock& clock) {
    for (int stream = 0; stream < stream_count; ++stream) join(clock, clocks_[stream]);
  }

  Clock& event_at(int event, std::int64_t step) {
    std::vector<Clock>& slots = events_[static_cast<std::size_t>(event)];
    return slots[static_cast<std::size_t>(step) % slots.size()];
  }

  void record_accesses(std::size_t index, int thread, std::int64_t step) {
    for (const BufferAccess& access : accesses_[index]) {
      const Buffer& buffer = plan_.buffers[static_cast<std::size_t>(access.use.buffer)];
      std::vector<PastAccess>& past = past_of(access.use.buffer, step % buffer.slots);
      const bool writes = access.access != Access::read;
      for (const PastAccess& earlier : past) {
        const bool earlier_writes = earlier.access.access != Access::read;
        const bool conflict = (writes || earlier_writes) && overlap(access.use, earlier.access.use);
        const bool ordered = clocks_[thread][earlier.thread] >= earlier.time;
        if (conflict && !ordered) return describe(index, thread, step, earlier);
      }
      // Whatever comes later and is ordered after this access is ordered after these too.
      std::erase_if(past, [&](const PastAccess& earlier) {
        const bool same_kind = writes || earlier.access.access == Access::read;
        const bool ordered = clocks_[thread][earlier.thread] >= earlier.time;
        return same_kind && ordered && covers(access.use, earlier.access.use);
      });
      past.push_back({access, thread, clocks_[thread][thread], index, step});
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

  void describe(std::size_t index, int thread, std::int64_t step, const PastAccess& earlier) {
    const Operation& later_operation = plan_.operations[index];
    const Operation& earlier_operation = plan_.operations[earlier.operation];
    const auto side = [&](const Operation& operation, int on, std::int64_t of) {
      return "'" + operation.name + "' of step " + std::to_string(of) + " on " + name_of(on);
    };
    race_ = side(later_operation, thread, step) + " and " +
            side(earlier_operation, earlier.thread, earlier.step) + " both touch '" +
            plan_.buffers[static_cast<std::size_t>(earlier.access.use.buffer)].name +
            "', and nothing orders them";
  }

  const StepPlan& plan_;
  std::vector<std::vector<BufferAccess>> accesses_;
  std::array<Clock, threads> clocks_{};
  std::vector<std::vector<Clock>> events_;
  std::vector<std::vector<std::vector<PastAccess>>> past_;  // by buffer, then slot
  std::optional<std::string> race_;
};

}  // namespace

std::optional<std::string> find_race(const StepPlan& plan) {
  return RaceFinder(plan).find();
}

}  // namespace stepgate
