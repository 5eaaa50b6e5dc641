// SPDX-License-Identifier: MIT
#include "judge/sentences/doubts.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "judge/sentences/timed_sentence.h"
#include "judge/verdict/sides.h"
#include "judge/verdict/words.h"
#include "measure/rounds/carry_over.h"
#include "stats/moments.h"
#include "stats/quantile.h"
#include "stats/rank_tests.h"
#include "support/seconds.h"

namespace stepgate {
namespace {

constexpr std::int64_t fewest_rounds_to_see_a_change = 12;
// Of the way to the limit: a ratio that changes, or is carried, by less is on the same side of it.
constexpr double share_that_matters = 0.5;

class Doubts {
 public:
  Doubts(const Expectation& sentence, std::span<const PlannedStep> plans,
         const Measurement& measurement, const TimedEvidence& evidence)
      : plans_(plans),
        measurement_(measurement),
        evidence_(evidence),
        left_(static_cast<int>(plan_named(plans, only_metric(sentence.left)->variant))),
        right_(static_cast<int>(plan_named(plans, only_metric(sentence.right)->variant))),
        is_rate_(is_rate(only_metric(sentence.left)->metric)),
        way_to_limit_(way_to_limit(sentence, evidence.ratio)),
        negligible_(negligible_share * std::abs(way_to_limit_)),
        matters_(share_that_matters * std::abs(way_to_limit_)) {}

  std::optional<std::string> rare_work() const {
    for (const int variant : {left_, right_}) {
      const PlannedStep& plan = plans_[static_cast<std::size_t>(variant)];
      const std::int64_t segment =
          measurement_.variants[static_cast<std::size_t>(variant)].segment_steps;
      const Operation* rarest = nullptr;
      double cost = 0;  // a step
      for (std::size_t index = 0; index < plan->operations.size(); ++index) {
        const Operation& operation = plan->operations[index];
        if (segment == 0 || segment % operation.every == 0) continue;
        cost += plan.facts().operations[index].rough_seconds / static_cast<double>(operation.every);
        if (!rarest || operation.every > rarest->every) rarest = &operation;
      }
      const double share = rarest ? cost / step_seconds(variant) : 0;
      if (share <= negligible_) continue;
      return fmt::format(
          "'{}' of '{}' happens every {} steps and a segment holds {}: what it costs, up to {} of "
          "a step by the plan, is not in what was measured; 'measure.steps = {}' would cover it",
          rarest->name, plan->variant, rarest->every, segment, share_in_words(share),
          rarest->every);
    }
    return std::nullopt;
  }

  // Only what brings the ratio nearer to its limit: a run of one variant alone would then say less.
  std::optional<std::string> carry_over() const {
    const auto carried = carry_over_between(measurement_.rounds, left_, right_);
    if (!carried || !brings_the_limit_nearer(*carried)) return std::nullopt;
    return fmt::format(
        "'{}' and '{}' disturb each other: where steps follow their own kind, their ratio is "
        "{} nearer to the limit; {}",
        name_of(left_), name_of(right_), share_in_words(std::abs(carried->size)), way_out());
  }

  // The same of what the host did ahead of time; only where there was somebody's time to do it in.
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

  double step_seconds(int variant) const {
    double sum = 0;
    double steps = 0;
    for (const Round& round : measurement_.rounds) {
      for (const Segment& segment : round.segments) {
        if (segment.variant != variant) continue;
        sum += seconds(segment.elapsed);
        steps += static_cast<double>(segment.steps);
      }
    }
    return std::max(sum, 1e-12) / std::max(steps, 1.0);
  }

  static double typical(std::span<const double> contrasts) {
    return std::exp(quantile({contrasts.begin(), contrasts.end()}, 0.5));
  }

  std::span<const PlannedStep> plans_;
  const Measurement& measurement_;
  const TimedEvidence& evidence_;
  int left_;
  int right_;
  bool is_rate_;         // the sides are rates, not times
  double way_to_limit_;  // in logarithms
  double negligible_;
  double matters_;
};

}  // namespace

std::optional<std::string> doubt_about(const Expectation& sentence,
                                       std::span<const PlannedStep> plans,
                                       const Measurement& measurement,
                                       const TimedEvidence& evidence) {
  if (measurement.rounds.empty()) return std::nullopt;
  const Doubts doubts(sentence, plans, measurement, evidence);
  // A percentile is counted, in rounds that hold all the work that is frequent enough to matter to
  // it.
  const bool counts = compares_high_percentiles(sentence);
  if (!counts) {
    if (auto rare = doubts.rare_work()) return rare;
  }
  if (auto carried = doubts.carry_over()) return carried;
  if (auto ahead = doubts.run_ahead()) return ahead;
  return counts ? std::nullopt : doubts.change();
}

}  // namespace stepgate
