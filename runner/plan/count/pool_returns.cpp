// SPDX-License-Identifier: MIT
#include "plan/count/pool_returns.h"

#include <algorithm>
#include <numeric>
#include <utility>
#include <vector>

#include "plan/allocate/async_pool.h"
#include "plan/analyse/access.h"

namespace stepgate {
namespace {

constexpr std::int64_t longest_period = 1'000'000'000;
constexpr std::int64_t most_visits =
    2'000'000;  // operations to visit, which take some milliseconds

bool concerns_the_pool(const StepPlan& plan, const Operation& operation) {
  const auto is_of_pool = [&](int buffer) {
    return buffer_at(plan, buffer).allocated_by == AllocatedBy::cuda_async;
  };
  if (operation.captured) return false;
  if (const auto* allocate = std::get_if<Allocate>(&operation.action))
    return is_of_pool(allocate->buffer);
  if (const auto* release = std::get_if<Release>(&operation.action))
    return is_of_pool(release->buffer);
  const auto* waits = std::get_if<HostWaits>(&operation.action);
  return waits != nullptr && waits->what != WaitFor::poll;
}

// Simulates the pool over two periods of steps.
class PoolOverSteps {
 public:
  explicit PoolOverSteps(const StepPlan& plan) : plan_(plan), pool_(plan.keep_bytes) {
    for (const Operation& operation : plan.operations) {
      if (!concerns_the_pool(plan, operation)) continue;
      operations_.push_back(&operation);
      if (operation.every != 1) rare_.push_back(&operation);
    }
  }

  // The number of steps after which the same operations act again.
  std::optional<std::int64_t> period() const {
    std::int64_t period = 1;
    for (const Operation* operation : rare_) {
      period = std::lcm(period, operation->every);
      if (period > longest_period) return std::nullopt;
    }
    return period;
  }

  // The first period grows the pool; only the second one is counted.
  std::optional<double> returns_a_step() {
    const auto period = this->period();
    if (!period) return std::nullopt;
    const std::int64_t end = 2 * *period;
    std::int64_t visits = 0;
    double returns = 0;
    for (std::int64_t step = 0; step < end;) {
      visits += std::ssize(operations_);
      if (visits > most_visits) return std::nullopt;
      const auto before = state();
      const std::int64_t in_step = returns_in(step);
      std::int64_t next = step + 1;
      // Following steps like this one leave the pool unchanged and need no simulation.
      if (state() == before && !has_rare(step)) next = std::min(next_rare(step), end);
      const std::int64_t counted = next - std::max(step, *period);
      returns += static_cast<double>(in_step * std::max<std::int64_t>(counted, 0));
      step = next;
    }
    return returns / static_cast<double>(*period);
  }

 private:
  std::pair<std::int64_t, std::int64_t> state() const {
    return {pool_.live_bytes(), pool_.held_bytes()};
  }

  bool has_rare(std::int64_t step) const {
    return std::ranges::any_of(
        rare_, [&](const Operation* operation) { return acts_for(*operation, step); });
  }

  // The next step in which a rare operation acts.
  std::int64_t next_rare(std::int64_t step) const {
    std::int64_t next = 2 * longest_period;
    for (const Operation* operation : rare_) {
      const std::int64_t until =
          ((operation->turn - (step + 2)) % operation->every + operation->every) % operation->every;
      next = std::min(next, step + 1 + until);
    }
    return next;
  }

  std::int64_t returns_in(std::int64_t step) {
    std::int64_t returns = 0;
    for (const Operation* operation : operations_) {
      if (!acts_for(*operation, step)) continue;
      if (const auto* allocate = std::get_if<Allocate>(&operation->action))
        pool_.allocate(buffer_at(plan_, allocate->buffer).bytes);
      else if (const auto* release = std::get_if<Release>(&operation->action))
        pool_.release(buffer_at(plan_, release->buffer).bytes);
      else
        returns += pool_.wait() > 0;
    }
    return returns;
  }

  const StepPlan& plan_;
  AsyncPool pool_;
  std::vector<const Operation*> operations_;
  std::vector<const Operation*> rare_;  // operations that act only in some steps
};

}  // namespace

std::optional<double> pool_returns_per_step(const StepPlan& plan) {
  if (!plan.keep_bytes) return 0;
  return PoolOverSteps(plan).returns_a_step();
}

}  // namespace stepgate
