// SPDX-License-Identifier: MIT
#include "judge/assertions/doubts.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/seconds.h"
#include "base/stats/moments.h"
#include "base/stats/quantile.h"
#include "base/stats/rank_tests.h"
#include "judge/assertions/timed_assertion.h"
#include "judge/verdict/sides.h"
#include "judge/verdict/words.h"
#include "measure/rounds/carry_over.h"
#include "measure/schedule.h"

namespace stepgate {
namespace {

constexpr std::int64_t fewest_rounds_to_see_a_change = 12;
// Share of the distance between ratio and limit. A change of the ratio by less leaves it on the
// same side of the limit.
constexpr double share_that_matters = 0.5;

// Median over segments, since rare work may be in a few of them by chance.
double step_seconds(const Measurement& measurement, std::size_t variant) {
  std::vector<double> times{};
  for (const Round& round : measurement.rounds) {
    for (const Segment& segment : round.segments) {
      if (segment.variant == static_cast<int>(variant))
        times.push_back(seconds(segment.elapsed) / static_cast<double>(segment.steps));
    }
  }
  return std::max(quantile(std::move(times), 0.5), 1e-12);
}

// Returns the relative increase of the metric that this work would cause.
double relative_price(const MetricOf& metric, const UncoveredWork& uncovered,
                      const Measurement& measurement, std::size_t variant) {
  const double step = step_seconds(measurement, variant);
  if (!is_of_few_steps(metric.metric)) return uncovered.seconds_a_step / step;
  double value = 0;  // mean over the rounds
  for (const Round& round : measurement.rounds) {
    value += round_value(round, static_cast<int>(variant), 1, metric.metric).value_or(0) /
             static_cast<double>(measurement.rounds.size());
  }
  if (metric.metric == Metric::step_ms_max)
    return std::max((step + uncovered.most_seconds) / std::max(value, 1e-12) - 1, 0.0);
  return uncovered.most_seconds > step ? uncovered.share_of_steps / std::max(value, 1e-6) : 0;
}

// Returns whether this change of log(ratio) brings the ratio nearer to a limit by more than the
// negligible share of the distance.
bool reaches_a_limit(double change, const Expectation& assertion, double ratio) {
  return std::ranges::any_of(bounds_of(assertion), [&](const Bound& bound) {
    const double way = bound.margin - std::log(ratio);
    return change * way > 0 && std::abs(change) > negligible_share * std::abs(way);
  });
}

// Returns a period in steps. Rarer work does not change the percentile, since it is less than a
// tenth of the steps beyond it.
std::int64_t rarest_seen_by(Metric metric) {
  constexpr double of_those_beyond = 10;
  const auto percentile = percentile_of(metric);
  return percentile ? std::llround(of_those_beyond / (1 - *percentile))
                    : std::numeric_limits<std::int64_t>::max();
}

class Doubts {
 public:
  Doubts(const Expectation& assertion, std::span<const Subject> subjects,
         const Measurement& measurement, const TimedEvidence& evidence)
      : measurement_(measurement),
        evidence_(evidence),
        left_(static_cast<int>(subject_named(subjects, only_metric(assertion.left)->variant))),
        right_(static_cast<int>(subject_named(subjects, only_metric(assertion.right)->variant))),
        is_rate_(is_rate(only_metric(assertion.left)->metric)),
        way_to_limit_(way_to_limit(assertion, evidence.ratio)),
        matters_(share_that_matters * std::abs(way_to_limit_)) {}

  // Doubts only carry-over that brings the ratio nearer to its limit: a run of one variant alone
  // would then show a smaller difference.
  std::optional<std::string> carry_over() const {
    const auto carried = carry_over_between(measurement_.rounds, left_, right_);
    if (!carried || !brings_the_limit_nearer(*carried)) return std::nullopt;
    return fmt::format(
        "'{}' and '{}' disturb each other: where steps follow their own kind, their ratio is "
        "{} nearer to the limit; {}",
        name_of(left_), name_of(right_), share_in_words(std::abs(carried->size)), way_out());
  }

  // Doubts host work that ran ahead; this happens only in interleaved rounds, during steps of
  // another variant.
  std::optional<std::string> run_ahead() const {
    if (!measurement_.segments_because.empty()) return std::nullopt;
    const auto ahead = run_ahead_between(measurement_.rounds, left_, right_);
    if (!ahead || !brings_the_limit_nearer(*ahead)) return std::nullopt;
    const bool of_left = ahead->size > 0;
    return fmt::format(
        "the host issued steps of '{}' while the device was at those of '{}': alone their ratio "
        "would be {} nearer to the limit; {}",
        name_of(of_left ? left_ : right_), name_of(of_left ? right_ : left_),
        share_in_words(std::abs(ahead->size)), way_out());
  }

  std::optional<std::string> change() const {
    const std::span<const double> own =
        std::span(evidence_.contrasts).subspan(static_cast<std::size_t>(evidence_.earlier_rounds));
    if (std::ssize(own) < fewest_rounds_to_see_a_change) return std::nullopt;
    const auto first = own.first(own.size() / 2);
    const auto second = own.subspan(own.size() / 2);
    const double changed = std::abs(std::log(typical(second) / typical(first)));
    if (changed > matters_ && two_samples_differ(first, second, doubt_level)) {
      return fmt::format("the ratio changed during the run, from {} to {}",
                         factor_in_words(typical(first)), factor_in_words(typical(second)));
    }
    if (std::sqrt(moments_of(own).variance) > matters_ && neighbours_agree(own, doubt_level)) {
      return std::string("the ratio wandered during the run: rounds are like the one before");
    }
    return std::nullopt;
  }

 private:
  bool brings_the_limit_nearer(const CarryOver& carried) const {
    const double towards = is_rate_ ? -carried.size : carried.size;
    return towards * way_to_limit_ > 0 && std::abs(carried.size) > matters_ && is_shown(carried);
  }

  std::string_view way_out() const {
    return measurement_.segments_because.empty()
               ? "'measure.interleave = \"segments\"' keeps them further apart"
               : "a limit further from what was measured would be clear of it";
  }

  const std::string& name_of(int variant) const {
    return measurement_.variants[static_cast<std::size_t>(variant)].name;
  }

  static double typical(std::span<const double> contrasts) {
    return std::exp(quantile({contrasts.begin(), contrasts.end()}, 0.5));
  }

  const Measurement& measurement_;
  const TimedEvidence& evidence_;
  int left_;
  int right_;
  bool is_rate_;         // the sides are rates, not times
  double way_to_limit_;  // distance to the limit, in logarithms
  double matters_;
};

}  // namespace

std::optional<std::string> doubt_about_rare_work(const Expectation& assertion,
                                                 std::span<const Subject> subjects,
                                                 const Measurement& measurement, double ratio) {
  if (measurement.rounds.empty()) return std::nullopt;
  for (const bool of_left : {true, false}) {
    for (const MetricOf& metric : metrics_in(of_left ? assertion.left : assertion.right)) {
      if (metric.stored || row_of(metric.metric).evidence != Evidence::timed) continue;
      const std::size_t variant = subject_named(subjects, metric.variant);
      const std::int64_t segment = measurement.variants[variant].segment_steps;
      const UncoveredWork uncovered =
          uncovered_work(subjects[variant].periodic, segment, rarest_seen_by(metric.metric));
      if (!uncovered.rarest) continue;
      const double share = uncovered.seconds_a_step / step_seconds(measurement, variant);
      const double change = std::log1p(relative_price(metric, uncovered, measurement, variant));
      const double side = of_left != is_rate(metric.metric) ? 1 : -1;
      if (!reaches_a_limit(side * change, assertion, ratio)) continue;
      return fmt::format(
          "'{}' of '{}' happens every {} steps and a segment holds {}: what it costs, up to {} of "
          "a step by the plan, is not in what was measured; 'measure.steps = {}' would cover it",
          uncovered.rarest->name, metric.variant, uncovered.rarest->every, segment,
          share_in_words(share), uncovered.rarest->every);
    }
  }
  return std::nullopt;
}

std::optional<std::string> doubt_about(const Expectation& assertion,
                                       std::span<const Subject> subjects,
                                       const Measurement& measurement,
                                       const TimedEvidence& evidence) {
  if (measurement.rounds.empty()) return std::nullopt;
  // High percentiles are counted, in rounds that hold all work that is frequent enough to affect
  // them.
  const bool counts = compares_high_percentiles(assertion);
  if (!counts) {
    if (auto rare = doubt_about_rare_work(assertion, subjects, measurement, evidence.ratio))
      return rare;
  }
  const Doubts doubts(assertion, subjects, measurement, evidence);
  if (auto carried = doubts.carry_over()) return carried;
  if (auto ahead = doubts.run_ahead()) return ahead;
  return counts ? std::nullopt : doubts.change();
}

}  // namespace stepgate
