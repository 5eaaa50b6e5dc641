// SPDX-License-Identifier: MIT
#include "compare/gate/soak.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <span>
#include <vector>

#include "base/seconds.h"
#include "base/stats/quantile.h"
#include "base/stats/rank_tests.h"
#include "base/text/units.h"
#include "judge/verdict/words.h"

namespace stepgate {
namespace {

using std::chrono::nanoseconds;

// The workload runs for this time first, since an idle GPU starts at another clock rate. For the
// measurement it is loaded anew.
constexpr nanoseconds time_to_warm_up = std::chrono::milliseconds(500);
constexpr std::int64_t steps_of_a_segment = 10;
// The smallest window at either end. It ends before a slowdown after 200 steps begins.
constexpr std::size_t fewest_compared = 12;
// Significance level for one launch; two launches must agree.
constexpr double level = 1e-3;

struct Soaked {
  std::vector<double> step_seconds;  // of the segments, in order
  std::int64_t steps = 0;

  std::span<const double> early(std::size_t segments) const {
    return std::span(step_seconds).first(segments);
  }
  std::span<const double> late(std::size_t segments) const {
    return std::span(step_seconds).last(segments);
  }
};

// Step times at the beginning and at the end of a launch.
struct Change {
  double early_seconds = 0;
  double late_seconds = 0;
  bool is_shown = false;     // by a test of ranks
  bool is_in_total = false;  // the second half takes longer, which rare stalls alone can cause
};

double mean(std::span<const double> values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

double median(std::span<const double> values) {
  return quantile(std::vector<double>(values.begin(), values.end()), 0.5);
}

// Runs segments of this length until there are enough, or until the time `most`, as reported by the
// worker, is over.
Soaked run_for(Worker& worker, const std::string& workload, std::int64_t of_a_segment,
               nanoseconds most) {
  (void)worker.load(workload);
  const RunSteps segment{.steps = of_a_segment, .wash_out_steps = 0};
  Soaked soaked;
  nanoseconds spent{0};
  while (soaked.steps < steps_of_a_soak && spent < most) {
    const Ran ran = worker.run(segment);
    spent += ran.elapsed;
    soaked.steps += ran.steps;
    soaked.step_seconds.push_back(seconds(ran.elapsed) / static_cast<double>(ran.steps));
  }
  worker.unload();
  return soaked;
}

// Returns fewer steps where steps are so long that there would be too few segments in time.
std::int64_t segment_of(double step_seconds) {
  const double most = seconds(longest_soak) / (3 * fewest_compared) / step_seconds;
  return std::clamp(static_cast<std::int64_t>(most), std::int64_t{1}, steps_of_a_segment);
}

// Returns window sizes that double, and half of all segments. Wherever a slowdown begins, some
// window at the end has mostly slow segments and its counterpart at the beginning has few.
std::vector<std::size_t> windows_of(std::size_t segments) {
  std::vector<std::size_t> windows;
  for (std::size_t window = fewest_compared; window < segments / 2; window *= 2)
    windows.push_back(window);
  windows.push_back(segments / 2);
  return windows;
}

// Tests whether segments at the end exceed the limit more often, or by more. Times below the limit
// count as the limit.
bool exceeds_more_often(std::span<const double> early, std::span<const double> late, double limit,
                        double at_level) {
  const auto beyond = [&](std::span<const double> values) {
    std::vector<double> cut(values.begin(), values.end());
    for (double& value : cut) value = std::max(value, limit);
    return cut;
  };
  return two_samples_differ(beyond(early), beyond(late), at_level);
}

Change change_of(const Soaked& soaked, double margin) {
  const std::vector<std::size_t> windows = windows_of(soaked.step_seconds.size());
  const double at_level = level / static_cast<double>(2 * windows.size());
  const std::size_t half = windows.back();
  Change change{.early_seconds = median(soaked.early(fewest_compared)),
                .late_seconds = median(soaked.late(fewest_compared))};
  const auto shows = [&](double early, double late) {
    if (late <= early * (1 + margin)) return;
    change = {.early_seconds = early, .late_seconds = late, .is_shown = true};
  };
  for (const std::size_t window : windows) {
    if (change.is_shown) break;
    const std::span<const double> early = soaked.early(window);
    const std::span<const double> late = soaked.late(window);
    if (two_samples_differ(early, late, at_level)) shows(median(early), median(late));
    const double limit = median(early) * (1 + margin);
    if (!change.is_shown && exceeds_more_often(early, late, limit, at_level))
      shows(mean(early), mean(late));
  }
  const double early = mean(soaked.early(half));
  const double late = mean(soaked.late(half));
  change.is_in_total = late > early * (1 + margin);
  if (change.is_in_total && !change.is_shown) {
    change.early_seconds = early;
    change.late_seconds = late;
  }
  return change;
}

std::string agreement_of(std::span<const Change> changes) {
  const Change& first = changes.front();
  if (changes.size() == 1) return "";
  const Change& second = changes.back();
  if (first.is_shown && second.is_shown) return "; in both of two launches";
  if (first.is_shown != second.is_shown)
    return fmt::format("; the {} of two launches became slower, the {} did not",
                       first.is_shown ? "first" : "second", first.is_shown ? "second" : "first");
  return second.is_in_total ? "; in total, in both of two launches, though a typical step does not"
                            : "; the first of two launches took longer in total alone";
}

Outcome outcome_of(std::span<const Change> changes) {
  const auto shown = std::ranges::count(changes, true, &Change::is_shown);
  if (shown == 2) return Outcome::fails;
  if (shown > 0) return Outcome::undecided;
  const auto in_total = std::ranges::count(changes, true, &Change::is_in_total);
  return in_total == 2 ? Outcome::undecided : Outcome::passes;
}

}  // namespace

SoakedWorkload soak(const std::string& workload, double margin,
                    const std::function<std::unique_ptr<Worker>()>& launch) {
  SoakedWorkload result{.name = workload, .margin = margin, .reason = {}};
  std::vector<Change> changes;
  const auto again = [&] {
    return changes.empty() ||
           (changes.size() == 1 && (changes.front().is_shown || changes.front().is_in_total));
  };
  while (again()) {
    const std::unique_ptr<Worker> worker = launch();
    (void)worker->hello();
    const Soaked warm_up = run_for(*worker, workload, 1, time_to_warm_up);
    const Soaked soaked =
        run_for(*worker, workload, segment_of(median(warm_up.step_seconds)), longest_soak);
    worker->quit();
    result.steps = changes.empty() ? soaked.steps : std::min(result.steps, soaked.steps);
    if (soaked.step_seconds.size() < 2 * fewest_compared) {
      result.outcome = Outcome::undecided;
      result.reason = fmt::format("{} steps take {}: too few to compare the last with the first",
                                  soaked.steps, seconds_text(seconds(longest_soak)));
      return result;
    }
    changes.push_back(change_of(soaked, margin));
  }
  result.outcome = outcome_of(changes);
  result.early_seconds = changes.back().early_seconds;
  result.late_seconds = changes.back().late_seconds;
  result.reason = fmt::format(
      "after {} steps a step takes {} ({} -> {}); the limit is +{:.3g} %{}", result.steps,
      growth_in_words(result.late_seconds / result.early_seconds),
      in_words(result.early_seconds, MetricUnit::seconds),
      in_words(result.late_seconds, MetricUnit::seconds), 100 * margin, agreement_of(changes));
  return result;
}

ComparisonVerdict verdict_of(std::span<const SoakedWorkload> workloads, const Introduction& both,
                             const ComparisonSettings& settings) {
  ComparisonVerdict verdict{.introduction = both, .settings = settings};
  for (const SoakedWorkload& soaked : workloads) {
    verdict.workloads.push_back({.name = soaked.name,
                                 .margin = soaked.margin,
                                 .outcome = soaked.outcome,
                                 .base_step_seconds = soaked.early_seconds,
                                 .head_step_seconds = soaked.late_seconds,
                                 .steps = soaked.steps,
                                 .longest_launch = soaked.steps,
                                 .timed = {},
                                 .reason = soaked.reason});
  }
  return verdict;
}

}  // namespace stepgate
