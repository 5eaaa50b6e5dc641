// SPDX-License-Identifier: MIT
// Matching runs, and the decision against them.
#include "judge/stored_sentence.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "judge/counted_sentence.h"
#include "judge/reasons.h"
#include "judge/stored_reasons.h"
#include "plan/anchors.h"
#include "scenario/fingerprint.h"
#include "stats/moments.h"
#include "stats/prediction_interval.h"

namespace stepgate {
namespace {

constexpr std::size_t fewest_devices_in_a_pool = 3;
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

// One timed sentence against its stored runs.
class TimedAgainstStored {
 public:
  TimedAgainstStored(const Expectation& sentence, std::span<const StepPlan> plans,
                     const Measurement& measurement, const JudgeSettings& settings)
      : sentence_(sentence),
        plans_(plans),
        rounds_(std::span(measurement.rounds)
                    .first(std::min<std::size_t>(measurement.rounds.size(), rounds_of_stored_run))),
        settings_(settings),
        metric_(first_stored(sentence)),
        variant_(static_cast<int>(plan_named(plans, metric_.variant))),
        anchor_(static_cast<int>(plan_named(
            plans, anchor_variant(anchor_of(plans[static_cast<std::size_t>(variant_)]))))) {}

  void decide(const std::vector<const StoredVariant*>& stored, double confidence,
              SentenceVerdict& verdict) {
    for (const StoredVariant* one : stored) {
      const StoredTime* time = find_time(*one, stored_time_of(metric_.metric));
      if (time) stored_.push_back(moments_of(time->contrasts).mean);
    }
    const auto new_run = mean_contrast_to_anchor();
    if (stored_.empty() || !new_run) {
      verdict.reason = unknown_time_reason(metric_.metric);
      return;
    }
    const double centre = compare_values(verdict);
    StoredEvidence evidence{.runs = std::ssize(stored_),
                            .ratio = std::exp(centre),
                            .interval = {},
                            .deviation = {},
                            .smallest_shown = {},
                            .stored_contrasts = stored_,
                            .contrast = *new_run};
    if (stored_.size() > 1) {
      Prediction prediction = predict(*new_run, stored_);
      prediction.difference = centre;
      verdict.outcome = outcome_of(prediction);
      describe(prediction, confidence, evidence);
    }
    verdict.stored = std::move(evidence);
  }

 private:
  std::optional<double> mean_contrast_to_anchor() const {
    double sum = 0;
    for (const Round& round : rounds_) {
      const auto contrast = contrast_to_anchor(round, variant_, anchor_, metric_.metric);
      if (!contrast) return std::nullopt;
      sum += *contrast;
    }
    return sum / static_cast<double>(rounds_.size());
  }

  // What the stored runs would have taken in this round, by its anchor.
  double stored_value(const Round& round) const {
    const double anchor = round_value(round, anchor_, 1, Metric::step_ms_mean).value();
    const double seconds = std::exp(moments_of(stored_).mean) * anchor;
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
    const double alpha = has_floor && has_ceiling ? settings_.alpha / 2 : settings_.alpha;
    const bool refuted = (has_floor && shows_below(prediction, floor, alpha)) ||
                         (has_ceiling && shows_above(prediction, ceiling, alpha));
    if (refuted) return Outcome::refuted;
    const bool holds = (!has_floor || shows_above(prediction, floor, settings_.beta)) &&
                       (!has_ceiling || shows_below(prediction, ceiling, settings_.beta));
    return holds ? Outcome::holds : Outcome::undecided;
  }

  void describe(const Prediction& prediction, double confidence, StoredEvidence& evidence) const {
    const PredictionInterval interval = interval_of(prediction, 1 - confidence);
    evidence.interval = {.low = std::exp(interval.low), .high = std::exp(interval.high)};
    evidence.deviation = prediction.deviation;
    evidence.smallest_shown =
        std::expm1(smallest_shown(prediction, settings_.alpha, power_of_smallest_shown));
  }

  const Expectation& sentence_;
  std::span<const StepPlan> plans_;
  std::span<const Round> rounds_;
  const JudgeSettings& settings_;
  MetricOf metric_;
  int variant_;
  int anchor_;
  std::vector<double> stored_;  // mean contrast of each stored run
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
  if (matching.variants.empty()) {
    verdict.outcome = Outcome::not_comparable;
    verdict.reason = not_comparable_reason(matching.reason, scenario);
  } else if (std::ssize(measurement.rounds) < rounds_of_stored_run) {
    verdict.reason = too_few_rounds_reason(std::ssize(measurement.rounds));
  } else {
    TimedAgainstStored(sentence, plans, measurement, settings)
        .decide(matching.variants, scenario.measure.confidence, verdict);
    if (verdict.stored) verdict.reason = stored_reason(sentence, verdict, scenario);
  }
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
  const auto needs = [](const Expectation& sentence) {
    return names_stored(sentence) && evidence_of(sentence) == Evidence::timed;
  };
  return std::any_of(scenario.expect.begin(), scenario.expect.end(), needs) ||
         std::any_of(scenario.regime.begin(), scenario.regime.end(), needs);
}

MatchingRuns matching_runs(const Baseline& baseline, const Environment& now, const Variant& variant,
                           const std::string& anchor, const std::string& libraries) {
  MatchingRuns of_model;
  MatchingRuns of_device;
  std::set<std::string> devices;
  for (const StoredRun& run : baseline.runs) {
    const StoredVariant* stored = find_variant(run, variant.name);
    if (const auto against = reason_against(run, stored, now, variant, anchor, libraries)) {
      of_device.reason = *against;  // of the latest run
      continue;
    }
    of_model.variants.push_back(stored);
    devices.insert(run.environment.uuid);
    if (run.environment.uuid == now.uuid) of_device.variants.push_back(stored);
  }
  if (devices.size() >= fewest_devices_in_a_pool) return of_model;
  if (of_device.variants.empty() && !devices.empty()) {
    of_device.reason = other_device_reason(*devices.begin(), now.uuid, fewest_devices_in_a_pool);
  } else if (baseline.runs.empty()) {
    of_device.reason = "the baseline holds no runs";
  }
  return of_device;
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
