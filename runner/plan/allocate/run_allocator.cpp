// SPDX-License-Identifier: MIT
#include "plan/allocate/run_allocator.h"

#include <algorithm>
#include <numeric>
#include <set>
#include <vector>

#include "base/stats/moments.h"
#include "plan/allocate/step_allocator.h"
#include "plan/allocators/simulated_memory.h"
#include "plan/analyse/access.h"

namespace stepgate {
namespace {

constexpr std::int64_t endless_bytes = std::int64_t{1} << 50;
constexpr std::size_t most_slope_points = 1000;
// The first half of these lets the cache settle, and a slope needs two points in the second.
constexpr std::int64_t enough_periods = 4;
// The cost of a simulation in requests to the allocator: so many take less than a second. To pass
// by an operation that does not act in a step costs a small share of a request.
constexpr double most_requests = 1e6;
constexpr double passing_by = 0.02;

// The operations that the allocator serves in the steps themselves.
std::vector<const Operation*> served_in_steps(const StepPlan& plan) {
  std::vector<const Operation*> served;
  for (const Operation& operation : plan.operations) {
    const bool acts = std::holds_alternative<Allocate>(operation.action) ||
                      std::holds_alternative<Release>(operation.action) ||
                      std::holds_alternative<EmptyCache>(operation.action);
    if (acts && !operation.captured) served.push_back(&operation);
  }
  return served;
}

// The number of steps after which the same operations act again, or any number above `most`.
std::int64_t period_of(const std::vector<const Operation*>& operations, std::int64_t most) {
  std::int64_t period = 1;
  for (const Operation* operation : operations) {
    period = std::lcm(period, operation->every);
    if (period > most) break;
  }
  return period;
}

// At most so many values, evenly spaced, from the second half.
std::vector<std::pair<double, double>> points_of(const std::vector<std::int64_t>& values) {
  const std::size_t first = values.size() / 2;
  const std::size_t apart = std::max<std::size_t>(1, (values.size() - first) / most_slope_points);
  std::vector<std::pair<double, double>> points;
  for (std::size_t step = first; step < values.size(); step += apart)
    points.emplace_back(static_cast<double>(step), static_cast<double>(values[step]));
  return points;
}

// Records every segment that is taken or given back.
class WatchedMemory : public SimulatedMemory {
 public:
  explicit WatchedMemory(MemoryHistory* history)
      : SimulatedMemory(endless_bytes), history_(history) {}

  std::optional<Address> take_segment(std::int64_t bytes) override {
    const auto taken = SimulatedMemory::take_segment(bytes);
    if (taken) tell(MemoryAction::take_segment, *taken, bytes);
    return taken;
  }
  void give_back_segment(Address address, std::int64_t bytes) override {
    SimulatedMemory::give_back_segment(address, bytes);
    tell(MemoryAction::give_back_segment, address, bytes);
  }
  bool map_pages(Address address, std::int64_t bytes, std::int64_t page_bytes) override {
    const bool mapped = SimulatedMemory::map_pages(address, bytes, page_bytes);
    if (mapped) tell(MemoryAction::take_segment, address, bytes);
    return mapped;
  }
  void unmap_pages(Address address, std::int64_t bytes, std::int64_t page_bytes,
                   StreamId stream) override {
    SimulatedMemory::unmap_pages(address, bytes, page_bytes, stream);
    tell(MemoryAction::give_back_segment, address, bytes);
  }

  void stop_telling() { history_ = nullptr; }

 private:
  void tell(MemoryAction action, Address address, std::int64_t bytes) {
    if (history_ != nullptr)
      history_->events.push_back({.action = action, .address = address, .bytes = bytes});
  }

  MemoryHistory* history_;
};

class AllocatorRun {
 public:
  AllocatorRun(const StepPlan& plan, std::int64_t steps, MemoryHistory* history)
      : plan_(plan),
        steps_(steps),
        history_(history),
        memory_(history),
        allocator_(plan, memory_),
        operations_(served_in_steps(plan)) {
    calls_.resize(plan.operations.size());
    simulation_.steps = steps;
    simulation_.depends_on_streams = frees_depend_on_streams(plan);
  }

  std::variant<CountedAllocations, CannotLoad> run() {
    if (const auto refusal = allocator_.take_kept())
      return CannotLoad{in_words(*refusal, "what stays from step to step"), way_out(*refusal)};
    note_peak();
    tell_what_is_kept();
    if (auto cannot = capture_graph()) return *std::move(cannot);
    std::vector<std::int64_t> live;
    // Live memory varies within a period, so it is sampled once in each.
    const std::int64_t period = period_of(operations_, steps_);
    const std::int64_t last_steps = std::min(period, steps_);
    for (std::int64_t step = -prefetch_depth(plan_); step < steps_; ++step) {
      if (step == steps_ - last_steps) steady_ = true;
      issue_step(step);
      // Simulates a device that keeps up with the host. This matters only for frees across streams.
      for (int stream = 0; stream < std::ssize(plan_.streams); ++stream) memory_.finish(stream);
      const bool repeats = (step + 1) % period == 0;
      if (step < 0) continue;
      asked_.push_back(allocator_.statistics().num_device_alloc +
                       allocator_.statistics().num_device_free);
      if (repeats) live.push_back(allocator_.statistics().allocated_bytes.all.current);
    }
    simulation_.settled_after = settled_after(last_steps);
    finish(live, period);
    return CountedAllocations{simulation_, mean_calls()};
  }

 private:
  // Known only if twice the steps that it took, and at least two periods more, were simulated.
  std::optional<std::int64_t> settled_after(std::int64_t period) const {
    const auto calls_of_period = [&](std::int64_t last) {
      return asked_[static_cast<std::size_t>(last)] -
             (last < period ? 0 : asked_[static_cast<std::size_t>(last - period)]);
    };
    std::int64_t settled = steps_ - period;
    const std::int64_t of_last = calls_of_period(steps_ - 1);
    while (settled > 0 && calls_of_period(settled + period - 2) == of_last) --settled;
    if (std::max(2 * settled, settled + 2 * period) > steps_) return std::nullopt;
    return settled;
  }

  void issue_step(std::int64_t step) {
    for (const Operation* operation : operations_) {
      const std::int64_t acted_for = step + operation->ahead;
      if (!acts_for(*operation, acted_for)) continue;
      const MemoryStatistics before = allocator_.statistics();
      carry_out(*operation, acted_for);
      note_calls(*operation, before);
    }
    refused_.erase(refused_.begin(), refused_.lower_bound(step));
  }

  void tell(MemoryAction action, int buffer, const Operation* operation, std::int64_t step) {
    if (history_ == nullptr) return;
    history_->events.push_back(
        {.action = action,
         .address = allocator_.address(buffer, step),
         .bytes = plan_.buffers[static_cast<std::size_t>(buffer)].bytes,
         .stream = operation ? operation->stream : compute_stream,
         .buffer = buffer,
         .operation = operation ? static_cast<int>(operation - plan_.operations.data()) : -1,
         .step = step});
  }

  void tell_what_is_kept() {
    for (int buffer = 0; buffer < std::ssize(plan_.buffers); ++buffer) {
      const std::int64_t slots = plan_.buffers[static_cast<std::size_t>(buffer)].slots;
      for (std::int64_t step = 0; step < slots; ++step) {
        if (allocator_.holds(buffer, step)) tell(MemoryAction::allocate, buffer, nullptr, step);
      }
    }
  }

  void tell_refusal(const Allocate& allocate, const Operation& operation, std::int64_t step,
                    const Refusal& refusal) {
    if (history_ == nullptr) return;
    tell(MemoryAction::refuse, allocate.buffer, &operation, step);
    history_->events.back().address = 0;
    history_->events.back().free_bytes =
        refusal.cap_bytes ? std::max<std::int64_t>(0, *refusal.cap_bytes - refusal.reserved_bytes)
                          : refusal.device_free_bytes;
  }

  // Serves the captured operations once, before the first step.
  std::optional<CannotLoad> capture_graph() {
    const auto captured = served_by_capture(plan_);
    if (captured.empty()) return std::nullopt;
    allocator_.begin_capture();
    for (const Operation* operation : captured) {
      const auto* release = std::get_if<Release>(&operation->action);
      if (release) tell(MemoryAction::release, release->buffer, operation, 0);
      if (const auto refusal = allocator_.serve(*operation, 0))
        return CannotLoad{in_words(*refusal, "the graph: " + operation->name), way_out(*refusal)};
      const auto* allocate = std::get_if<Allocate>(&operation->action);
      if (allocate) tell(MemoryAction::allocate, allocate->buffer, operation, 0);
      note_peak();
    }
    allocator_.end_capture();
    return std::nullopt;
  }

  void carry_out(const Operation& operation, std::int64_t step) {
    if (const auto* allocate = std::get_if<Allocate>(&operation.action)) {
      if (refused_.contains(step)) return;
      const auto refusal = allocator_.allocate(allocate->buffer, step, operation.stream);
      note_peak();
      if (!refusal) return tell(MemoryAction::allocate, allocate->buffer, &operation, step);
      tell_refusal(*allocate, operation, step, *refusal);
      give_up(step, allocate->steps);
      if (simulation_.first_refusal.empty()) {
        simulation_.first_refusal =
            "step " + std::to_string(step) + ", '" + operation.name + "': " +
            in_words(*refusal, plan_.buffers[static_cast<std::size_t>(allocate->buffer)].name);
      }
    } else if (const auto* release = std::get_if<Release>(&operation.action)) {
      if (allocator_.holds(release->buffer, step))
        tell(MemoryAction::release, release->buffer, &operation, step);
      allocator_.release(release->buffer, step);
    } else {
      allocator_.empty_cache();
    }
  }

  // Marks all steps that would have used the allocation as given up.
  void give_up(std::int64_t step, std::int64_t count) {
    for (std::int64_t given_up = step; given_up < step + count; ++given_up) {
      refused_.insert(given_up);
      if (given_up < steps_) ++simulation_.refused_steps;
    }
  }

  // Called after every request, since live memory peaks right after one.
  void note_peak() {
    const MemoryStatistics& now = allocator_.statistics();
    if (now.allocated_bytes.all.current <= simulation_.peak_live_bytes) return;
    simulation_.peak_live_bytes = now.allocated_bytes.all.current;
    simulation_.reserved_at_peak_live_bytes = now.reserved_bytes.all.current;
  }

  // Adds up the driver calls of an operation in the last steps.
  void note_calls(const Operation& operation, const MemoryStatistics& before) {
    if (!steady_) return;
    const MemoryStatistics& after = allocator_.statistics();
    Calls& calls = calls_[static_cast<std::size_t>(&operation - plan_.operations.data())];
    ++calls.times;
    calls.allocations += after.num_device_alloc - before.num_device_alloc;
    calls.frees += after.num_device_free - before.num_device_free;
  }

  std::vector<DriverCalls> mean_calls() const {
    std::vector<DriverCalls> means;
    for (const Calls& calls : calls_) {
      const auto times = static_cast<double>(std::max<std::int64_t>(calls.times, 1));
      means.push_back({.allocations = static_cast<double>(calls.allocations) / times,
                       .frees = static_cast<double>(calls.frees) / times});
    }
    return means;
  }

  void finish(const std::vector<std::int64_t>& live, std::int64_t period) {
    const MemoryStatistics after = allocator_.statistics();
    simulation_.ooms = after.num_ooms;
    simulation_.retries = after.num_alloc_retries;
    simulation_.peak_live_bytes = after.allocated_bytes.all.peak;
    simulation_.peak_reserved_bytes = after.reserved_bytes.all.peak;
    simulation_.live_slope_bytes = theil_sen_slope(points_of(live)) / static_cast<double>(period);
    if (history_ != nullptr) history_->segments = allocator_.allocator().snapshot();
    memory_.stop_telling();  // what follows is not part of the steps
    allocator_.empty_cache();
    simulation_.live_after_empty_cache_bytes = allocator_.statistics().allocated_bytes.all.current;
  }

  struct Calls {
    std::int64_t times = 0;
    std::int64_t allocations = 0;
    std::int64_t frees = 0;
  };

  const StepPlan& plan_;
  std::int64_t steps_;
  MemoryHistory* history_;
  WatchedMemory memory_;
  StepAllocator allocator_;
  std::vector<const Operation*> operations_;  // the operations that the allocator serves
  std::set<std::int64_t> refused_;            // refused steps, until their operations are over
  std::vector<std::int64_t> asked_;           // driver calls up to the end of each step
  bool steady_ = false;                       // within the last steps, where everything repeats
  std::vector<Calls> calls_;                  // by operation, in the last steps
  AllocatorSimulation simulation_;
};

}  // namespace

SimulatedSteps steps_to_simulate(const StepPlan& plan) {
  const std::vector<const Operation*> served = served_in_steps(plan);
  double a_step = 1;
  for (const Operation* operation : served)
    a_step += passing_by + 1 / static_cast<double>(operation->every);
  const auto most = static_cast<std::int64_t>(most_requests / a_step);
  const std::int64_t wanted =
      enough_periods * period_of(served, std::max(most, plan.counted_steps));
  const std::int64_t steps = std::max(plan.counted_steps, std::min(wanted, most));
  return {.steps = steps, .know_every_step = steps >= wanted};
}

std::variant<CountedAllocations, CannotLoad> run_allocator(const StepPlan& plan, std::int64_t steps,
                                                           MemoryHistory* history) {
  return AllocatorRun(plan, steps, history).run();
}

}  // namespace stepgate
