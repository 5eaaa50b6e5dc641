// SPDX-License-Identifier: MIT
#include "duel/gate/soak.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>

#include "judge/verdict/words.h"
#include "stats/quantile.h"
#include "stats/rank_tests.h"
#include "support/seconds.h"
#include "support/text/units.h"

namespace stepgate {
namespace {

using std::chrono::nanoseconds;

// A GPU that has just begun runs at another clock. So long the work runs before, loaded anew for
// what counts.
constexpr nanoseconds time_to_warm_up = std::chrono::milliseconds(500);
// The first segments, which are over before a slowdown after 200 steps begins, and as many of the
// last ones.
constexpr std::int64_t steps_of_a_segment = 10;
constexpr std::size_t compared_segments = 12;
// One launch may differ so often by chance; two must agree.
constexpr double level = 1e-3;

struct Soaked {
  std::vector<double> step_seconds;  // of the segments, in order
  std::int64_t steps = 0;

  std::span<const double> early() const { return std::span(step_seconds).first(compared_segments); }
  std::span<const double> late() const { return std::span(step_seconds).last(compared_segments); }
};

double median(std::span<const double> values) {
  return quantile(std::vector<double>(values.begin(), values.end()), 0.5);
}

// Segments of so many steps until there are enough, or so much time, as the worker says, is over.
Soaked run_for(Worker& worker, const std::string& work, std::int64_t of_a_segment,
               nanoseconds most) {
  (void)worker.load(work);
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

// Fewer where steps take so long that too few segments would be over in time.
std::int64_t segment_of(double step_seconds) {
  const double most = seconds(longest_soak) / (3 * compared_segments) / step_seconds;
  return std::clamp(static_cast<std::int64_t>(most), std::int64_t{1}, steps_of_a_segment);
}

bool becomes_slower(const Soaked& soaked, double margin) {
  return median(soaked.late()) > median(soaked.early()) * (1 + margin) &&
         two_samples_differ(soaked.early(), soaked.late(), level);
}

}  // namespace

SoakedWork soak(const std::string& work, double margin,
                const std::function<std::unique_ptr<Worker>()>& launch) {
  SoakedWork result{.name = work, .margin = margin, .reason = {}};
  int slower = 0;
  int launches = 0;
  for (bool again = true; again; again = slower == launches && launches < 2) {
    const std::unique_ptr<Worker> worker = launch();
    (void)worker->hello();
    const Soaked warm_up = run_for(*worker, work, 1, time_to_warm_up);
    const Soaked soaked =
        run_for(*worker, work, segment_of(median(warm_up.step_seconds)), longest_soak);
    worker->quit();
    result.steps = launches == 0 ? soaked.steps : std::min(result.steps, soaked.steps);
    ++launches;
    if (soaked.step_seconds.size() < 2 * compared_segments) {
      result.outcome = Outcome::undecided;
      result.reason = fmt::format("{} steps take {}: too few to compare the last with the first",
                                  soaked.steps, seconds_text(seconds(longest_soak)));
      return result;
    }
    result.early_seconds = median(soaked.early());
    result.late_seconds = median(soaked.late());
    slower += becomes_slower(soaked, margin);
  }
  if (slower > 0) result.outcome = slower == launches ? Outcome::refuted : Outcome::undecided;
  result.reason = fmt::format(
      "after {} steps a step takes {:+.2g} % ({} -> {}); the limit is +{:.3g} %{}", result.steps,
      100 * (result.late_seconds / result.early_seconds - 1),
      in_words(result.early_seconds, MetricUnit::seconds),
      in_words(result.late_seconds, MetricUnit::seconds), 100 * margin,
      slower == 0         ? ""
      : slower < launches ? "; the first of two launches became slower, the second did not"
                          : "; in both of two launches");
  return result;
}

DuelVerdict verdict_of(std::span<const SoakedWork> works, const Introduction& both,
                       const DuelSettings& settings) {
  DuelVerdict verdict{.introduction = both, .settings = settings};
  for (const SoakedWork& soaked : works) {
    verdict.works.push_back({.name = soaked.name,
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
