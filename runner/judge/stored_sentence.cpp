// SPDX-License-Identifier: MIT
// Matching runs, and the decision against them.
#include "judge/stored_sentence.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "judge/counted_sentence.h"
#include "judge/reasons.h"
#include "judge/stored_reasons.h"
#include "plan/anchors.h"
#include "scenario/fingerprint.h"
#include "stats/moments.h"
#include "stats/prediction_interval.h"

namespace stepgate {
namespace {

constexpr std::size_t enough_runs_of_one_device = 5;
constexpr double power_of_smallest_shown = 0.8;

const Variant& variant_named(const Scenario& scenario, const std::string& name) {
  return *std::find_if(scenario.variants.begin(), scenario.variants.end(),
                       [&](const Variant& variant) { return variant.name == name; });
}

MetricOf first_stored(const Expectation& sentence) {
  const std::vector<MetricOf> metrics = metrics_in(sentence);
  return *std::find_if(metrics.begin(), metrics.end(),
                       [](const MetricOf& metric) { return metric.stored; });
}

// Why a stored variant is not this one, in words; nothing when it is.
std::optional<std::string> reason_against(const StoredRun& run, const StoredVariant* stored,
                                          const Environment& now, const Variant& variant,
                                          const std::string& anchor, const std::string& libraries) {
  if (const auto mismatch = match_environment(run.environment, now)) {
    return mismatch_reason(mismatch->key, mismatch->stored, mismatch->now);
  }
  if (stored == nullptr) return fmt::format("the stored runs hold no variant '{}'", variant.name);
  const std::uint64_t knobs = fingerprint_of(variant.knobs);
  if (stored->knobs != knobs) return changed_knobs_reason(variant.name);
  if (stored->anchor != anchor) return mismatch_reason("anchor", stored->anchor, anchor);
  if (stored->libraries != libraries && !stored->libraries.empty() && !libraries.empty()) {
    return mismatch_reason(fmt::format("library that '{}' depends on", variant.name),
                           stored->libraries, libraries);
  }
  return std::nullopt;
}

std::span<const Round> compared_rounds(const Measurement& measurement) {
  return std::span(measurement.rounds)
      .first(std::min<std::size_t>(measurement.rounds.size(), rounds_of_stored_run));
}

int anchor_for(std::span<const StepPlan> plans, int variant) {
  return static_cast<int>(
      plan_named(plans, anchor_variant(anchor_of(plans[static_cast<std::size_t>(variant)]))));
}

// What the nth look at the same stored runs may spend of a sentence's rates: three quarters on the
// first, the rest on all others, since 1 / (n (n - 1)) from n = 2 on adds up to 1.
double share_of_look(double n) {
  return n == 1 ? 0.75 : 0.25 / (n * (n - 1));
}

// One timed sentence against its stored runs.
class TimedAgainstStored {
 public:
  TimedAgainstStored(const Expectation& sentence, std::span<const StepPlan> plans,
                     const Measurement& measurement, const JudgeSettings& settings)
      : sentence_(sentence),
        plans_(plans),
        measurement_(measurement),
        rounds_(compared_rounds(measurement)),
        settings_(settings),
        alpha_(settings.suite_alpha / static_cast<double>(settings.stored_lines)),
        metric_(first_stored(sentence)),
        variant_(static_cast<int>(plan_named(plans, metric_.variant))),
        anchor_(anchor_for(plans, variant_)) {}

  void decide(const MatchingRuns& stored, double confidence, SentenceVerdict& verdict) {
    for (const std::vector<const StoredVariant*>& unit : stored.units) {
      std::vector<double> means;
      for (const StoredVariant* one : unit) {
        const StoredTime* time = find_time(*one, stored_time_of(metric_.metric));
        if (time) means.push_back(moments_of(time->contrasts).mean);
      }
      if (!means.empty()) stored_.push_back(std::move(means));
    }
    const auto new_run = contrast_with_stored(sentence_, plans_, measurement_);
    if (stored_.empty() || !new_run) {
      verdict.reason = unknown_time_reason(metric_.metric);
      return;
    }
    const double centre = compare_values(verdict);
    StoredEvidence evidence;
    evidence.unit = stored.unit;
    evidence.ratio = std::exp(centre);
    evidence.contrast = *new_run;
    for (const std::vector<double>& unit : stored_) {
      evidence.runs += std::ssize(unit);
      evidence.runs_of_units.push_back(std::ssize(unit));
      evidence.stored_contrasts.insert(evidence.stored_contrasts.end(), unit.begin(), unit.end());
    }
    if (stored_.size() >= fewest_stored_units) {
      const Prediction prediction = look_again(*new_run, centre, verdict.outcome, evidence);
      verdict.left = *verdict.right * evidence.ratio;
      describe(prediction, confidence, evidence);
    }
    verdict.stored = std::move(evidence);
  }

 private:
  // Every run of this subject was a look at the same stored runs: the mean of all so far, which is
  // taken for one run, whatever made them alike. The first look that decides stays. `centre` is
  // log(left / right) of this run.
  Prediction look_again(double new_run, double centre, Outcome& outcome, StoredEvidence& evidence) {
    const std::span<const double> earlier = contrasts_for(sentence_, settings_.earlier.stored);
    std::vector<double> runs(earlier.begin(), earlier.end());
    runs.push_back(new_run);
    const bool is_rate = metric_.metric == Metric::samples_per_s;
    const bool is_right = only_metric(sentence_.left)->stored;
    const double direction = is_rate == is_right ? 1 : -1;
    Prediction prediction;
    double sum = 0;
    for (std::size_t look = 1; look <= runs.size() && outcome == Outcome::undecided; ++look) {
      sum += runs[look - 1];
      const double mean = sum / static_cast<double>(look);
      share_ = settings_.is_kept ? share_of_look(static_cast<double>(look)) : 1;
      prediction = predict(mean, stored_);
      prediction.difference = centre + direction * (mean - new_run);
      outcome = outcome_of(prediction);
      evidence.new_runs = static_cast<std::int64_t>(look);
      evidence.ratio = std::exp(prediction.difference);
    }
    return prediction;
  }

  double mean_of_units() const {
    double sum = 0;
    for (const std::vector<double>& unit : stored_) sum += moments_of(unit).mean;
    return sum / static_cast<double>(stored_.size());
  }

  // What the stored runs would have taken in this round, by its anchor.
  double stored_value(const Round& round) const {
    const double anchor = round_value(round, anchor_, 1, Metric::step_ms_mean).value();
    const double seconds = std::exp(mean_of_units()) * anchor;
    const StepPlan& plan = plans_[static_cast<std::size_t>(variant_)];
    return metric_.metric == Metric::samples_per_s ? mean_batch_size(plan) / seconds : seconds;
  }

  // Mean of log(left / right); fills in the sides.
  double compare_values(SentenceVerdict& verdict) const {
    double centre = 0;
    double log_right = 0;
    for (const Round& round : rounds_) {
      const Sources sources{
          .plans = plans_,
          .counted = settings_.counted,
          .round = &round,
          .stored = [&](const MetricOf&) { return std::optional(stored_value(round)); }};
      centre += contrast_of(sentence_, sources).value();
      log_right += std::log(side_value(sentence_.right, sources).value());
    }
    const auto rounds = static_cast<double>(rounds_.size());
    verdict.right = std::exp(log_right / rounds);
    verdict.left = *verdict.right * std::exp(centre / rounds);
    return centre / rounds;
  }

  // As in timed_sentence.h: one claim or, for ~=, two. One claim that is false refutes the
  // sentence, so each may be wrongly refuted in its part of alpha only.
  Outcome outcome_of(const Prediction& prediction) const {
    const Relation relation = sentence_.relation;
    const double within = sentence_.within.value_or(0);
    const bool has_floor = relation != Relation::at_most && relation != Relation::less;
    const bool has_ceiling = relation != Relation::at_least && relation != Relation::greater;
    const double floor = std::log(std::max(1 - within, 1e-9));
    const double ceiling = std::log1p(within);
    const double alpha = share_ * (has_floor && has_ceiling ? alpha_ / 2 : alpha_);
    const double beta = share_ * settings_.beta;
    const bool refuted = (has_floor && shows_below(prediction, floor, alpha)) ||
                         (has_ceiling && shows_above(prediction, ceiling, alpha));
    if (refuted) return Outcome::refuted;
    const bool holds = (!has_floor || shows_above(prediction, floor, beta)) &&
                       (!has_ceiling || shows_below(prediction, ceiling, beta));
    return holds ? Outcome::holds : Outcome::undecided;
  }

  void describe(const Prediction& prediction, double confidence, StoredEvidence& evidence) const {
    const PredictionInterval interval = interval_of(prediction, 1 - confidence);
    evidence.interval = {.low = std::exp(interval.low), .high = std::exp(interval.high)};
    evidence.deviation = prediction.deviation;
    evidence.smallest_shown =
        std::expm1(smallest_shown(prediction, share_ * alpha_, power_of_smallest_shown));
  }

  const Expectation& sentence_;
  std::span<const StepPlan> plans_;
  const Measurement& measurement_;
  std::span<const Round> rounds_;
  const JudgeSettings& settings_;
  double alpha_;      // what each of the sentences about stored runs may spend
  double share_ = 1;  // of its rates, for the look at hand
  MetricOf metric_;
  int variant_;
  int anchor_;
  std::vector<std::vector<double>> stored_;  // by units, the mean contrast of each run
};

void decide_timed(const Expectation& sentence, const Scenario& scenario,
                  std::span<const StepPlan> plans, const Measurement& measurement,
                  const JudgeSettings& settings, SentenceVerdict& verdict) {
  const Variant& variant = variant_named(scenario, first_stored(sentence).variant);
  const std::size_t index = plan_named(plans, variant.name);
  const std::string anchor(anchor_of(plans[index]));
  const MatchingRuns matching =
      matching_runs(*settings.baseline, environment_of(measurement.device), variant, anchor,
                    libraries_in_words(measurement.variants[index].libraries));
  if (matching.units.empty()) {
    verdict.outcome = Outcome::not_comparable;
    verdict.reason = not_comparable_reason(matching.reason, scenario);
  } else if (std::ssize(measurement.rounds) < rounds_of_stored_run) {
    verdict.reason = too_few_rounds_reason(std::ssize(measurement.rounds));
  } else {
    TimedAgainstStored(sentence, plans, measurement, settings)
        .decide(matching, scenario.measure.confidence, verdict);
    if (verdict.stored) verdict.reason = stored_reason(sentence, verdict, scenario);
  }
}

using Unit = std::vector<const StoredVariant*>;

std::vector<Unit> values_of(const std::map<std::string, Unit>& units) {
  std::vector<Unit> values;
  for (const auto& [name, unit] : units) values.push_back(unit);
  return values;
}

// Counts follow from the knobs alone: whatever machine the latest run was on.
const StoredVariant* latest(const Baseline& baseline, const Variant& variant) {
  const std::uint64_t knobs = fingerprint_of(variant.knobs);
  for (auto run = baseline.runs.rbegin(); run != baseline.runs.rend(); ++run) {
    const StoredVariant* stored = find_variant(*run, variant.name);
    if (stored && stored->knobs == knobs) return stored;
  }
  return nullptr;
}

void decide_stored_counts(const Expectation& sentence, const Scenario& scenario,
                          std::span<const StepPlan> plans, const Measurement& measurement,
                          const JudgeSettings& settings, SentenceVerdict& verdict) {
  const auto latest_of = [&](const MetricOf& metric) {
    return latest(*settings.baseline, variant_named(scenario, metric.variant));
  };
  const auto stored_count = [&](const MetricOf& metric) -> std::optional<double> {
    const StoredVariant* stored = latest_of(metric);
    const StoredCount* count = stored ? find_count(*stored, metric.metric) : nullptr;
    return count ? std::optional(count->value) : std::nullopt;
  };
  for (const MetricOf& metric : metrics_in(sentence)) {
    if (!metric.stored || stored_count(metric)) continue;
    const bool known = latest_of(metric);
    verdict.outcome = known ? Outcome::undecided : Outcome::not_comparable;
    verdict.reason = known ? unknown_time_reason(metric.metric)
                           : not_comparable_reason(changed_knobs_reason(metric.variant), scenario);
    return;
  }
  decide_counted(sentence, plans, measurement, settings.counted, stored_count, verdict);
}

}  // namespace

bool needs_anchors(const Scenario& scenario) {
  return std::any_of(scenario.expect.begin(), scenario.expect.end(), compares_stored_times) ||
         std::any_of(scenario.regime.begin(), scenario.regime.end(), compares_stored_times);
}

std::optional<double> contrast_with_stored(const Expectation& sentence,
                                           std::span<const StepPlan> plans,
                                           const Measurement& measurement) {
  const std::span<const Round> rounds = compared_rounds(measurement);
  if (std::ssize(rounds) < rounds_of_stored_run) return std::nullopt;
  const MetricOf metric = first_stored(sentence);
  const auto variant = static_cast<int>(plan_named(plans, metric.variant));
  const std::string anchor = anchor_variant(anchor_of(plans[static_cast<std::size_t>(variant)]));
  const auto of_anchor = std::find_if(plans.begin(), plans.end(),
                                      [&](const StepPlan& plan) { return plan.variant == anchor; });
  if (of_anchor == plans.end()) return std::nullopt;
  double sum = 0;
  for (const Round& round : rounds) {
    const auto contrast = contrast_to_anchor(
        round, variant, static_cast<int>(of_anchor - plans.begin()), metric.metric);
    if (!contrast) return std::nullopt;
    sum += *contrast;
  }
  return sum / static_cast<double>(rounds.size());
}

MatchingRuns matching_runs(const Baseline& baseline, const Environment& now, const Variant& variant,
                           const std::string& anchor, const std::string& libraries) {
  std::string reason;  // against the latest run that does not match
  std::map<std::string, Unit> devices;
  std::map<std::string, Unit> own_sittings;
  std::size_t own_runs = 0;
  for (const StoredRun& run : baseline.runs) {
    const StoredVariant* stored = find_variant(run, variant.name);
    if (const auto against = reason_against(run, stored, now, variant, anchor, libraries)) {
      reason = *against;
      continue;
    }
    devices[run.environment.uuid].push_back(stored);
    if (run.environment.uuid != now.uuid) continue;
    own_sittings[sitting_of(run)].push_back(stored);
    ++own_runs;
  }
  const bool is_known =
      own_runs >= enough_runs_of_one_device && own_sittings.size() >= fewest_stored_units;
  if (!is_known && devices.size() >= fewest_stored_units)
    return {.unit = StoredUnit::device, .units = values_of(devices), .reason = {}};
  if (own_runs == 0 && !devices.empty()) {
    reason = other_device_reason(devices.begin()->first, now.uuid, fewest_stored_units);
  } else if (baseline.runs.empty()) {
    reason = "the baseline holds no runs";
  }
  const bool simulated = now.kind == name_of(DeviceKind::simulated);
  return {.unit = simulated ? StoredUnit::run : StoredUnit::sitting,
          .units = values_of(own_sittings),
          .reason = std::move(reason)};
}

void decide_stored(const Expectation& sentence, const Scenario& scenario,
                   std::span<const StepPlan> plans, const Measurement& measurement,
                   const JudgeSettings& settings, SentenceVerdict& verdict) {
  if (!settings.baseline) {
    verdict.outcome = Outcome::no_baseline;
    verdict.reason = no_baseline_reason(scenario);
  } else if (evidence_of(sentence) != Evidence::timed) {
    decide_stored_counts(sentence, scenario, plans, measurement, settings, verdict);
  } else if (measurement.rounds.empty()) {
    verdict.reason = no_rounds_reason();
  } else {
    decide_timed(sentence, scenario, plans, measurement, settings, verdict);
  }
}

}  // namespace stepgate
