// SPDX-License-Identifier: MIT
#include "measure/schedule.h"

#include <algorithm>
#include <numeric>

namespace stepgate {
namespace {

using std::chrono::nanoseconds;

constexpr nanoseconds preferred_segment = std::chrono::milliseconds(5);
// A segment of the slowest variant may last up to this time to give the fastest variant more steps.
constexpr nanoseconds longest_for_the_fastest = std::chrono::milliseconds(8);
// Segments may exceed measure.steps up to this time to hold whole periods.
constexpr nanoseconds longest_segment = std::chrono::milliseconds(100);
// Longer segments are allowed where the budget still has room for this number of rounds of two
// segments each: the fewest rounds for a verdict, plus warm-up and wash-out.
constexpr double rounds_in_a_budget = 12;
// Within this time, a host that is not the bottleneck has filled the queue. A host that is the
// bottleneck never fills it.
constexpr nanoseconds time_to_fill_the_queue = std::chrono::milliseconds(5);
// Counted after the prefetched batches are used up.
constexpr std::int64_t steps_at_the_loaders_pace = 3;

std::int64_t rounded_up(std::int64_t steps, std::int64_t period) {
  return (steps + period - 1) / period * period;
}

// Returns the common period of all subjects. If it exceeds `most`, returns the longest period of a
// subject that does not.
std::int64_t period_of(std::span<const Subject> subjects, std::int64_t most) {
  std::int64_t of_all = 1;
  std::int64_t longest = 1;
  for (const Subject& subject : subjects) {
    const std::int64_t own = common_period(subject, most).value_or(1);
    longest = std::max(longest, own);
    of_all = std::min(std::lcm(of_all, own), most + 1);
  }
  return of_all <= most ? of_all : longest;
}

}  // namespace

std::int64_t whole_turns(std::int64_t period, std::int64_t turn, std::int64_t most) {
  const std::int64_t both = std::lcm(period, turn);
  return both <= most ? both : period;
}

std::optional<std::int64_t> common_period(const Subject& subject, std::int64_t most) {
  std::int64_t period = 1;
  for (const PeriodicWork& work : subject.periodic) {
    period = std::lcm(period, work.every);
    if (period > most) return std::nullopt;
  }
  return whole_turns(period, subject.loader_turn, most);
}

UncoveredWork uncovered_work(std::span<const PeriodicWork> periodic, std::int64_t segment_steps,
                             std::int64_t most) {
  UncoveredWork uncovered;
  for (const PeriodicWork& work : periodic) {
    if (segment_steps == 0 || segment_steps % work.every == 0 || work.every > most) continue;
    uncovered.seconds_a_step += work.rough_seconds / static_cast<double>(work.every);
    uncovered.most_seconds = std::max(uncovered.most_seconds, work.rough_seconds);
    uncovered.share_of_steps += 1 / static_cast<double>(work.every);
    if (!uncovered.rarest || work.every > uncovered.rarest->every) uncovered.rarest = &work;
  }
  return uncovered;
}

std::int64_t wash_out_steps(const Subject& subject, nanoseconds step_time) {
  const std::int64_t until_deep =
      std::min<std::int64_t>(time_to_fill_the_queue / std::max(step_time, nanoseconds(1)) + 1,
                             subject.steps_in_flight + 2);
  const std::int64_t made_meanwhile =
      subject.loader_depth > 0 ? subject.loader_depth + steps_at_the_loaders_pace : 0;
  return std::max(until_deep, made_meanwhile + subject.prefetch_depth);
}

std::int64_t segment_steps(std::span<const Subject> subjects, const MeasureKnobs& knobs,
                           std::span<const nanoseconds> step_times) {
  const auto [least, longest] = std::ranges::minmax_element(step_times);
  const nanoseconds fastest = std::max(*least, nanoseconds(1));
  const nanoseconds slowest = std::max(*longest, nanoseconds(1));
  const Subject& slowest_subject = subjects[static_cast<std::size_t>(longest - step_times.begin())];
  std::int64_t steps =
      std::max(std::min(preferred_segment / fastest, longest_for_the_fastest / slowest) + 1,
               wash_out_steps(slowest_subject, slowest));
  const std::int64_t for_percentiles = (knobs.fewest_steps + 1) / 2;
  steps = std::max(std::min(steps, knobs.steps), for_percentiles);
  const std::chrono::duration<double> share(knobs.max_seconds / (2 * rounds_in_a_budget) /
                                            static_cast<double>(subjects.size()));
  const nanoseconds longest_here =
      std::max(longest_segment, std::chrono::duration_cast<nanoseconds>(share));
  const std::int64_t most = std::max({knobs.steps, longest_here / slowest, 2 * for_percentiles});
  const std::int64_t period = period_of(subjects, most);
  return rounded_up(steps, period) <= most ? rounded_up(steps, period) : most / period * period;
}

std::vector<int> permutation(int count, Random& random) {
  std::vector<int> numbers(static_cast<std::size_t>(count));
  std::iota(numbers.begin(), numbers.end(), 0);
  for (std::size_t last = numbers.size(); last > 1; --last) {
    std::swap(numbers[last - 1], numbers[random.below(last)]);
  }
  return numbers;
}

}  // namespace stepgate
