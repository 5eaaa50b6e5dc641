// SPDX-License-Identifier: MIT
// The length of segments and the order of rounds.
#include "measure/schedule.h"

#include <algorithm>
#include <numeric>

#include "plan/access.h"

namespace stepgate {
namespace {

using std::chrono::nanoseconds;

constexpr nanoseconds preferred_segment = std::chrono::milliseconds(5);
constexpr nanoseconds longest_segment = std::chrono::milliseconds(100);
// A host that is not the limit has filled the queue by then; one that is never fills it.
constexpr nanoseconds time_to_fill = std::chrono::milliseconds(5);
constexpr std::int64_t fewest_steps = 3;

std::vector<int> counted_up(int count) {
  std::vector<int> numbers(static_cast<std::size_t>(count));
  std::iota(numbers.begin(), numbers.end(), 0);
  return numbers;
}

void shuffle(std::vector<int>& numbers, Random& random) {
  for (std::size_t last = numbers.size(); last > 1; --last) {
    std::swap(numbers[last - 1], numbers[random.below(last)]);
  }
}

}  // namespace

std::int64_t common_period(std::span<const StepPlan> plans, std::int64_t most) {
  std::int64_t period = 1;
  for (const StepPlan& plan : plans) {
    for (const Operation& operation : plan.operations) {
      period = std::lcm(period, operation.every);
      if (period > most) return 1;
    }
  }
  return period;
}

std::int64_t wash_out_steps(std::span<const StepPlan> plans,
                            std::span<const nanoseconds> step_times) {
  std::int64_t queue = 0;  // of steps that the host may be ahead
  std::int64_t ready = 0;  // batches that lay ready when the segment began
  for (const StepPlan& plan : plans) {
    queue = std::max<std::int64_t>(queue, plan.run_ahead_steps);
    ready = std::max(ready, plan.loader.depth + furthest_ahead(plan));
  }
  const nanoseconds shortest_step =
      std::max(*std::min_element(step_times.begin(), step_times.end()), nanoseconds(1));
  const std::int64_t until_deep = std::min(time_to_fill / shortest_step + 1, queue + 2);
  return std::max(until_deep, ready + fewest_steps);
}

std::int64_t segment_steps(std::span<const StepPlan> plans, const MeasureKnobs& knobs,
                           std::span<const nanoseconds> step_times) {
  const auto [fastest, slowest] = std::minmax_element(step_times.begin(), step_times.end());
  const nanoseconds shortest_step = std::max(*fastest, nanoseconds(1));
  const nanoseconds longest_step = std::max(*slowest, nanoseconds(1));
  const std::int64_t preferred =
      std::max(preferred_segment / shortest_step + 1, wash_out_steps(plans, step_times));
  const std::int64_t least = std::min(fewest_steps, knobs.steps);
  const std::int64_t most = std::clamp(longest_segment / longest_step, least, knobs.steps);
  const std::int64_t steps = std::clamp(preferred, least, most);
  const std::int64_t period = common_period(plans, knobs.steps);
  const std::int64_t rounded_up = (steps + period - 1) / period * period;
  return rounded_up <= knobs.steps ? rounded_up : knobs.steps / period * period;
}

std::vector<std::vector<int>> pass_orders(RoundOrder kind, int variants, Random& random) {
  std::vector<int> order = counted_up(variants);
  if (kind == RoundOrder::abba) {
    if (random.below(2) == 1) std::reverse(order.begin(), order.end());
  } else {
    shuffle(order, random);
  }
  std::vector<std::vector<int>> passes;
  for (int pass = 0; pass < variants; ++pass) {
    passes.push_back(order);
    std::rotate(order.begin(), order.begin() + 1, order.end());
  }
  return passes;
}

std::vector<std::vector<int>> slot_rotations(int variants, Random& random) {
  std::vector<int> slots = counted_up(variants);
  shuffle(slots, random);
  std::vector<std::vector<int>> passes;
  for (int pass = 0; pass < variants; ++pass) {
    passes.push_back(slots);
    for (int& slot : slots) slot = (slot + 1) % variants;
  }
  return passes;
}

}  // namespace stepgate
