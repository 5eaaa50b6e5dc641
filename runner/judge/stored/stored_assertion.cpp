// SPDX-License-Identifier: MIT
// Finds the stored runs that match a run, and compares the run with them.
#include "judge/stored/stored_assertion.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "base/stats/moments.h"
#include "base/stats/prediction_interval.h"
#include "judge/assertions/counted_assertion.h"
#include "judge/assertions/reasons.h"
#include "judge/stored/stored_reasons.h"
#include "judge/stored/stored_rule.h"
#include "scenario/knobs/fingerprint.h"

namespace stepgate {
namespace {

constexpr std::size_t enough_runs_of_one_device = 5;
constexpr double power_of_smallest_shown = 0.8;

const Variant& variant_named(const Scenario& scenario, const std::string& name) {
  return *std::find_if(scenario.variants.begin(), scenario.variants.end(),
                       [&](const Variant& variant) { return variant.name == name; });
}

MetricOf first_stored(const Expectation& assertion) {
  const std::vector<MetricOf> metrics = metrics_in(assertion);
  return *std::find_if(metrics.begin(), metrics.end(),
                       [](const MetricOf& metric) { return metric.stored; });
}

std::span<const Round> compared_rounds(const Measurement& measurement) {
  return std::span(measurement.rounds)
      .first(std::min<std::size_t>(measurement.rounds.size(), rounds_of_stored_run));
}

int anchor_for(std::span<const Subject> subjects, int variant) {
  const std::string& anchor = subjects[static_cast<std::size_t>(variant)].anchor;
  return static_cast<int>(subject_named(subjects, anchor_variant(anchor)));
}

// The share of an assertion's error rates for the nth comparison with the same stored runs: three
// quarters for the first one, and the rest for all others, since 1 / (n (n - 1)) summed from n = 2
// is 1.
double share_of_look(double n) {
  return n == 1 ? 0.75 : 0.25 / (n * (n - 1));
}

// One kind of value of each stored run, grouped by unit.
using Units = std::vector<std::vector<double>>;

double mean_of_units(const Units& units) {
  double sum = 0;
  for (const std::vector<double>& unit : units) sum += moments_of(unit).mean;
  return sum / static_cast<double>(units.size());
}

// Compares one timed assertion with its stored runs.
class TimedAgainstStored {
 public:
  TimedAgainstStored(const Expectation& assertion, std::span<const Subject> subjects,
                     const Measurement& measurement, const JudgeSettings& settings)
      : assertion_(assertion),
        subjects_(subjects),
        measurement_(measurement),
        rounds_(compared_rounds(measurement)),
        settings_(settings),
        alpha_(settings.suite_alpha / static_cast<double>(settings.stored_lines)),
        metric_(first_stored(assertion)),
        variant_(static_cast<int>(subject_named(subjects, metric_.variant))),
        anchor_(anchor_for(subjects, variant_)) {}

  void decide(const MatchingRuns& stored, double confidence, AssertionVerdict& verdict) {
    add_units(stored);
    const auto new_run = look_at_stored(assertion_, subjects_, measurement_);
    if (normalised_.empty() || !new_run) {
      verdict.reason = unknown_time_reason(metric_.metric);
      return;
    }
    own_contrast_ = new_run->contrast;
    centre_ = compare_values(verdict);
    StoredEvidence evidence;
    describe(stored, evidence);
    evidence.contrast = new_run->contrast;
    evidence.anchor_contrast = new_run->anchor;
    Looks looks(*new_run);
    if (normalised_.size() >= fewest_stored_units) {
      looks = look_again(*new_run, verdict.outcome, evidence);
      describe(predictions(looks), confidence, evidence);
      verdict.left = *verdict.right * evidence.normalised.ratio;
    } else {
      evidence.normalised.ratio = std::exp(centre_);
      evidence.raw.ratio = std::exp(raw_difference(looks));
      evidence.anchor.ratio = std::exp(looks.anchor - mean_of_units(anchors_));
    }
    evidence.raw_now = in_units_of_metric(looks.contrast + looks.anchor);
    evidence.raw_then = in_units_of_metric(mean_of_units(raw_));
    verdict.stored = std::move(evidence);
  }

 private:
  // The values that decide an assertion, as means over looks. A look is one run's comparison with
  // the stored runs.
  struct Looks {
    explicit Looks(const StoredLook& one)
        : contrast(one.contrast), raw_contrast(one.contrast), anchor(one.anchor) {}
    double contrast;
    // Means over the looks with a known anchor. Only looks from older files lack it.
    double raw_contrast;
    double anchor;
  };

  struct Predictions {
    Prediction normalised;
    Prediction raw;
    Prediction anchor;
  };

  void add_units(const MatchingRuns& stored) {
    for (const std::vector<const StoredVariant*>& unit : stored.units) {
      std::vector<double> normalised;
      std::vector<double> anchors;
      std::vector<double> raw;
      for (const StoredVariant* one : unit) {
        const StoredTime* time = find_time(*one, stored_time_of(metric_.metric));
        if (!time) continue;
        normalised.push_back(moments_of(time->contrasts).mean);
        anchors.push_back(std::log(one->anchor_seconds));
        raw.push_back(normalised.back() + anchors.back());
      }
      if (normalised.empty()) continue;
      normalised_.push_back(std::move(normalised));
      anchors_.push_back(std::move(anchors));
      raw_.push_back(std::move(raw));
    }
  }

  // Decides by the mean of all looks so far, which counts as one run. Every run of this subject is
  // a look at the same stored runs. The first look that decides is final, with one exception: after
  // a pass, a run that is beyond the limit by itself is decided alone, so that no such run passes.
  Looks look_again(const StoredLook& new_run, Outcome& outcome, StoredEvidence& evidence) {
    const std::vector<StoredLook> runs = all_looks(new_run);
    const std::size_t unknown = looks_without_anchor();
    Looks at(new_run);
    Looks sum({});
    for (std::size_t look = 1; look <= runs.size() && outcome != Outcome::fails; ++look) {
      const bool is_known = look > unknown;
      add(runs[look - 1], is_known, sum);
      take_share_of(look);
      if (outcome != Outcome::passes) {
        at = mean_of(sum, look, unknown, new_run);
        evidence.new_runs = static_cast<std::int64_t>(look);
        decide_by(predictions(at), outcome, evidence);
        continue;
      }
      const Looks alone(runs[look - 1]);
      if (!is_known || position_of(predictions(alone).raw) != Against::beyond) continue;
      const Outcome held = outcome;
      const StoredNote note = evidence.note;
      decide_by(predictions(alone), outcome, evidence);
      if (outcome == Outcome::fails || look == runs.size()) {
        at = alone;
        evidence.new_runs = 1;
      } else {  // another run's machine does not matter
        outcome = held;
        evidence.note = note;
      }
    }
    return at;
  }

  std::vector<StoredLook> all_looks(const StoredLook& new_run) const {
    const std::span<const double> contrasts = contrasts_for(assertion_, settings_.earlier.stored);
    const std::span<const double> anchors =
        contrasts_for(assertion_, settings_.earlier.stored_anchors);
    const std::size_t unknown = looks_without_anchor();
    std::vector<StoredLook> all;
    for (std::size_t look = 0; look < contrasts.size(); ++look) {
      all.push_back(
          {.contrast = contrasts[look], .anchor = look < unknown ? 0 : anchors[look - unknown]});
    }
    all.push_back(new_run);
    return all;
  }

  // Counts the first looks, from files that did not store the anchor.
  std::size_t looks_without_anchor() const {
    const std::size_t looks = contrasts_for(assertion_, settings_.earlier.stored).size();
    const std::size_t known = contrasts_for(assertion_, settings_.earlier.stored_anchors).size();
    return looks - std::min(looks, known);
  }

  static void add(const StoredLook& look, bool is_known, Looks& sum) {
    sum.contrast += look.contrast;
    if (!is_known) return;
    sum.raw_contrast += look.contrast;
    sum.anchor += look.anchor;
  }

  // While no earlier anchor is known, the anchor of this run is used.
  static Looks mean_of(const Looks& sum, std::size_t looks, std::size_t unknown,
                       const StoredLook& new_run) {
    Looks mean(new_run);
    mean.contrast = sum.contrast / static_cast<double>(looks);
    if (looks > unknown) {
      const auto known = static_cast<double>(looks - unknown);
      mean.raw_contrast = sum.raw_contrast / known;
      mean.anchor = sum.anchor / known;
    }
    return mean;
  }

  void take_share_of(std::size_t look) {
    share_ = settings_.is_kept ? share_of_look(static_cast<double>(look)) : 1;
  }

  // Sign by which log(left / right) changes with the log of this run's time.
  double direction() const {
    const bool of_rate = is_rate(metric_.metric);
    const bool is_right = only_metric(assertion_.left)->stored;
    return of_rate == is_right ? 1 : -1;
  }

  double normalised_difference(const Looks& looks) const {
    return centre_ + direction() * (looks.contrast - own_contrast_);
  }

  double raw_difference(const Looks& looks) const {
    const double from_anchor = looks.anchor - mean_of_units(anchors_);
    const double of_known = looks.raw_contrast - looks.contrast;
    return normalised_difference(looks) + direction() * (of_known + from_anchor);
  }

  Predictions predictions(const Looks& looks) const {
    Predictions all{.normalised = predict(looks.contrast, normalised_),
                    .raw = predict(looks.raw_contrast + looks.anchor, raw_),
                    .anchor = predict(looks.anchor, anchors_)};
    all.normalised.difference = normalised_difference(looks);
    all.raw.difference = raw_difference(looks);
    return all;
  }

  void decide_by(const Predictions& all, Outcome& outcome, StoredEvidence& evidence) const {
    const double alpha = share_ * alpha_;
    const StoredDecision decision =
        decide_by_both({.raw = position_of(all.raw),
                        .raw_looks_beyond = looks_beyond(all.raw),
                        .normalised = position_of(all.normalised),
                        .anchor_is_slower = shows_above(all.anchor, 0, alpha),
                        .anchor_is_faster = shows_below(all.anchor, 0, alpha)});
    outcome = decision.outcome;
    evidence.note = decision.note;
    if (outcome == Outcome::passes && is_better_than_tolerated(all.raw) &&
        is_better_than_tolerated(all.normalised))
      evidence.note = StoredNote::refresh_the_baseline;
  }

  // The time that the stored runs would have taken in this round, scaled by its anchor.
  double stored_value(const Round& round) const {
    const double anchor = round_value(round, anchor_, 1, Metric::step_ms_mean).value();
    return in_units_of_metric(mean_of_units(normalised_) + std::log(anchor));
  }

  double in_units_of_metric(double log_seconds) const {
    const double seconds = std::exp(log_seconds);
    if (!is_rate(metric_.metric)) return seconds;
    const Subject& subject = subjects_[static_cast<std::size_t>(variant_)];
    return amount_per_step(subject, nullptr, metric_.metric).value() / seconds;
  }

  // Returns the mean of log(left / right) and fills in the sides.
  double compare_values(AssertionVerdict& verdict) const {
    double centre = 0;
    double log_right = 0;
    for (const Round& round : rounds_) {
      const Sources sources{.subjects = subjects_, .round = &round, .stored = [&](const MetricOf&) {
                              return std::optional(stored_value(round));
                            }};
      centre += contrast_of(assertion_, sources).value();
      log_right += std::log(side_value(assertion_.right, sources).value());
    }
    const auto rounds = static_cast<double>(rounds_.size());
    verdict.right = std::exp(log_right / rounds);
    verdict.left = *verdict.right * std::exp(centre / rounds);
    return centre / rounds;
  }

  bool has_floor() const {
    return assertion_.relation != Relation::at_most && assertion_.relation != Relation::less;
  }
  bool has_ceiling() const {
    return assertion_.relation != Relation::at_least && assertion_.relation != Relation::greater;
  }
  double floor() const { return std::log(std::max(1 - assertion_.within.value_or(0), 1e-9)); }
  double ceiling() const { return std::log1p(assertion_.within.value_or(0)); }

  bool looks_beyond(const Prediction& prediction) const {
    return (has_floor() && prediction.difference < floor()) ||
           (has_ceiling() && prediction.difference > ceiling());
  }

  // Makes one claim or, for ~=, two, as in timed_assertion.h. One false claim makes the assertion
  // fail, so each claim gets its part of alpha.
  Against position_of(const Prediction& prediction) const {
    const double alpha = share_ * (has_floor() && has_ceiling() ? alpha_ / 2 : alpha_);
    const double beta = share_ * settings_.beta;
    const bool beyond = (has_floor() && shows_below(prediction, floor(), alpha)) ||
                        (has_ceiling() && shows_above(prediction, ceiling(), alpha));
    if (beyond) return Against::beyond;
    const bool within = (!has_floor() || shows_above(prediction, floor(), beta)) &&
                        (!has_ceiling() || shows_below(prediction, ceiling(), beta));
    return within ? Against::within : Against::open;
  }

  // A limit of 0.98x tolerates being 2 % worse, so being better than 2 % is more than tolerated. A
  // limit that demands a gain, or equality, tolerates nothing.
  bool is_better_than_tolerated(const Prediction& prediction) const {
    if (has_floor() && has_ceiling()) return false;
    const double to_equality = -std::log(limit_of(assertion_));
    const double beta = share_ * settings_.beta;
    if (has_floor()) return to_equality > 0 && shows_above(prediction, 2 * to_equality, beta);
    return to_equality < 0 && shows_below(prediction, 2 * to_equality, beta);
  }

  void describe(const MatchingRuns& stored, StoredEvidence& evidence) const {
    evidence.unit = stored.unit;
    evidence.anchor_name = subjects_[static_cast<std::size_t>(variant_)].anchor;
    for (std::size_t unit = 0; unit < normalised_.size(); ++unit) {
      const std::vector<double>& runs = normalised_[unit];
      evidence.runs += std::ssize(runs);
      evidence.runs_of_units.push_back(std::ssize(runs));
      evidence.stored_contrasts.insert(evidence.stored_contrasts.end(), runs.begin(), runs.end());
      evidence.stored_anchors.insert(evidence.stored_anchors.end(), anchors_[unit].begin(),
                                     anchors_[unit].end());
    }
    for (const StoredRun* run : stored.runs) {
      const std::string& commit = run->provenance.commit;
      if (std::find(evidence.commits.begin(), evidence.commits.end(), commit) ==
          evidence.commits.end())
        evidence.commits.push_back(commit);
      evidence.newest = std::max(evidence.newest, run->provenance.date);
    }
  }

  static StoredValue value_of(const Prediction& prediction, double confidence) {
    const PredictionInterval interval = interval_of(prediction, 1 - confidence);
    return {.ratio = std::exp(prediction.difference),
            .interval = RatioInterval{std::exp(interval.low), std::exp(interval.high)},
            .deviation = prediction.deviation};
  }

  void describe(const Predictions& all, double confidence, StoredEvidence& evidence) const {
    evidence.normalised = value_of(all.normalised, confidence);
    evidence.raw = value_of(all.raw, confidence);
    evidence.anchor = value_of(all.anchor, confidence);
    const Prediction& open =
        evidence.note == StoredNote::raw_is_not_shown ? all.raw : all.normalised;
    evidence.smallest_shown =
        std::expm1(smallest_shown(open, share_ * alpha_, power_of_smallest_shown));
  }

  const Expectation& assertion_;
  std::span<const Subject> subjects_;
  const Measurement& measurement_;
  std::span<const Round> rounds_;
  const JudgeSettings& settings_;
  double alpha_;       // error rate of each assertion about stored runs
  double share_ = 1;   // share of the error rates for the current look
  double centre_ = 0;  // log(left / right) of this run, of times divided by the anchor's
  double own_contrast_ = 0;
  MetricOf metric_;
  int variant_;
  int anchor_;
  // By unit, for each run: the mean of log(time / anchor's time), log(anchor's seconds), and their
  // sum.
  Units normalised_;
  Units anchors_;
  Units raw_;
};

// The latest run with these knobs on any machine: counts depend only on the knobs.
const StoredVariant* latest(const Baseline& baseline, const Variant& variant) {
  const std::uint64_t knobs = fingerprint_of(variant.knobs);
  for (auto run = baseline.runs.rbegin(); run != baseline.runs.rend(); ++run) {
    const StoredVariant* stored = find_variant(*run, variant.name);
    if (stored && stored->knobs == knobs) return stored;
  }
  return nullptr;
}

// Describes the change from the latest run with these knobs, on any machine; empty where there is
// none.
std::string raw_words_against_latest(const Baseline& baseline, const Variant& variant,
                                     const Measurement& measurement, std::size_t index) {
  const StoredVariant* stored = latest(baseline, variant);
  const std::span<const Round> rounds = compared_rounds(measurement);
  if (stored == nullptr) return "";
  double sum = 0;
  for (const Round& round : rounds) {
    const auto value = round_value(round, static_cast<int>(index), 1, Metric::step_ms_mean);
    if (!value) return "";
    sum += std::log(*value);
  }
  return raw_in_words(stored->step_seconds, std::exp(sum / static_cast<double>(rounds.size())));
}

std::string upgrades_since_latest(const Baseline& baseline, const Measurement& measurement) {
  return baseline.runs.empty() ? ""
                               : upgrades_in_words(baseline.runs.back().environment,
                                                   environment_of(measurement.device));
}

void decide_timed(const Expectation& assertion, const Scenario& scenario,
                  std::span<const Subject> subjects, const Measurement& measurement,
                  const JudgeSettings& settings, AssertionVerdict& verdict) {
  const MetricOf first = first_stored(assertion);
  const Variant& variant = variant_named(scenario, first.variant);
  const std::size_t index = subject_named(subjects, variant.name);
  const std::string& anchor = subjects[index].anchor;
  const std::string libraries = libraries_in_words(measurement.variants[index].libraries);
  const MatchingRuns matching = matching_runs(
      *settings.baseline, environment_of(measurement.device), variant, anchor, libraries);
  if (matching.units.empty()) {
    verdict.outcome = Outcome::not_comparable;
    verdict.reason = matching.reason +
                     raw_words_against_latest(*settings.baseline, variant, measurement, index) +
                     way_to_compare(scenario, matching.only_of_other_devices ||
                                                  settings.baseline->runs.empty()) +
                     upgraded_in_words(upgrades_since_latest(*settings.baseline, measurement));
  } else if (std::ssize(measurement.rounds) < rounds_of_stored_run) {
    verdict.reason = too_few_rounds_reason(std::ssize(measurement.rounds));
  } else {
    TimedAgainstStored(assertion, subjects, measurement, settings)
        .decide(matching, scenario.measure.confidence, verdict);
    if (verdict.stored) {
      verdict.stored->other_builds = other_builds_in_words(
          find_variant(*matching.runs.back(), variant.name)->libraries, libraries);
      verdict.stored->upgrades = upgrades_since_latest(*settings.baseline, measurement);
      verdict.reason = stored_reason(assertion, verdict, scenario);
    }
  }
}

using Unit = std::vector<const StoredVariant*>;

std::vector<Unit> values_of(const std::map<std::string, Unit>& units) {
  std::vector<Unit> values;
  for (const auto& [name, unit] : units) values.push_back(unit);
  return values;
}

void decide_stored_counts(const Expectation& assertion, const Scenario& scenario,
                          std::span<const Subject> subjects, const Measurement& measurement,
                          const JudgeSettings& settings, AssertionVerdict& verdict) {
  const auto latest_of = [&](const MetricOf& metric) {
    return latest(*settings.baseline, variant_named(scenario, metric.variant));
  };
  const auto stored_count = [&](const MetricOf& metric) -> std::optional<double> {
    const StoredVariant* stored = latest_of(metric);
    const StoredCount* count = stored ? find_count(*stored, metric.metric) : nullptr;
    return count ? std::optional(count->value) : std::nullopt;
  };
  for (const MetricOf& metric : metrics_in(assertion)) {
    if (!metric.stored || stored_count(metric)) continue;
    const bool known = latest_of(metric);
    verdict.outcome = known ? Outcome::undecided : Outcome::not_comparable;
    verdict.reason = known ? unknown_time_reason(metric.metric)
                           : changed_knobs_reason(metric.variant) + way_to_compare(scenario, false);
    return;
  }
  decide_counted(assertion, subjects, measurement, stored_count, verdict);
}

}  // namespace

bool needs_anchors(const Scenario& scenario) {
  return std::any_of(scenario.expect.begin(), scenario.expect.end(), compares_stored_times) ||
         std::any_of(scenario.regime.begin(), scenario.regime.end(), compares_stored_times);
}

std::optional<StoredLook> look_at_stored(const Expectation& assertion,
                                         std::span<const Subject> subjects,
                                         const Measurement& measurement) {
  const std::span<const Round> rounds = compared_rounds(measurement);
  if (std::ssize(rounds) < rounds_of_stored_run) return std::nullopt;
  const MetricOf metric = first_stored(assertion);
  const auto variant = static_cast<int>(subject_named(subjects, metric.variant));
  const std::string anchor = anchor_variant(subjects[static_cast<std::size_t>(variant)].anchor);
  const auto of_anchor =
      std::find_if(subjects.begin(), subjects.end(),
                   [&](const Subject& subject) { return subject.name == anchor; });
  if (of_anchor == subjects.end()) return std::nullopt;
  const auto index = static_cast<int>(of_anchor - subjects.begin());
  StoredLook sum;
  for (const Round& round : rounds) {
    const auto contrast = contrast_to_anchor(round, variant, index, metric.metric);
    if (!contrast) return std::nullopt;
    sum.contrast += *contrast;
    sum.anchor += std::log(round_value(round, index, 1, Metric::step_ms_mean).value());
  }
  const auto count = static_cast<double>(rounds.size());
  return StoredLook{.contrast = sum.contrast / count, .anchor = sum.anchor / count};
}

std::optional<std::string> reason_against(const StoredRun& run, const Environment& now,
                                          const StoredSubject& subject) {
  if (const auto mismatch = match_environment(run.environment, now)) {
    return mismatch_reason(mismatch->key, mismatch->stored, mismatch->now);
  }
  const StoredVariant* stored = find_variant(run, subject.variant);
  if (stored == nullptr) {
    return fmt::format("the stored runs hold no variant '{}'", subject.variant);
  }
  if (stored->knobs != subject.knobs) return changed_knobs_reason(subject.variant);
  if (stored->anchor != subject.anchor) {
    return mismatch_reason("anchor", stored->anchor, subject.anchor);
  }
  const std::string then = stored_libraries(stored->libraries).others;
  const std::string here = stored_libraries(subject.libraries).others;
  if (then != here && !then.empty() && !here.empty()) {
    return mismatch_reason(fmt::format("library that '{}' depends on", subject.variant), then,
                           here);
  }
  return std::nullopt;
}

MatchingRuns matching_runs(const Baseline& baseline, const Environment& now, const Variant& variant,
                           const std::string& anchor, const std::string& libraries) {
  return matching_runs(baseline, now,
                       {.variant = variant.name,
                        .knobs = fingerprint_of(variant.knobs),
                        .anchor = anchor,
                        .libraries = libraries});
}

MatchingRuns matching_runs(const Baseline& baseline, const Environment& now,
                           const StoredSubject& subject) {
  std::string reason;  // about the latest run that does not match
  std::map<std::string, Unit> devices;
  std::map<std::string, Unit> own_sessions;
  std::vector<const StoredRun*> of_all;
  std::vector<const StoredRun*> own;
  for (const StoredRun& run : baseline.runs) {
    const StoredVariant* stored = find_variant(run, subject.variant);
    if (const auto against = reason_against(run, now, subject)) {
      reason = *against;
      continue;
    }
    if (!run.baseline_reset.empty()) {
      devices.clear();
      own_sessions.clear();
      of_all.clear();
      own.clear();
    }
    devices[run.environment.uuid].push_back(stored);
    of_all.push_back(&run);
    if (run.environment.uuid != now.uuid) continue;
    own_sessions[session_of(run)].push_back(stored);
    own.push_back(&run);
  }
  const bool is_known =
      own.size() >= enough_runs_of_one_device && own_sessions.size() >= fewest_stored_units;
  if (!is_known && devices.size() >= fewest_stored_units)
    return {.unit = StoredUnit::device, .units = values_of(devices), .runs = of_all, .reason = {}};
  const bool only_others = own.empty() && !devices.empty();
  if (only_others) {
    reason = other_device_reason(devices.begin()->first, now.uuid, fewest_stored_units);
  } else if (baseline.runs.empty()) {
    reason = "the baseline holds no runs";
  }
  const bool simulated = now.kind == name_of(DeviceKind::simulated);
  return {.unit = simulated ? StoredUnit::run : StoredUnit::session,
          .units = values_of(own_sessions),
          .runs = std::move(own),
          .only_of_other_devices = only_others,
          .reason = std::move(reason)};
}

std::optional<std::string> reason_for_baseline_reset(const Scenario& scenario,
                                                     std::span<const Subject> subjects,
                                                     const Measurement& measurement,
                                                     const Baseline& baseline) {
  for (const Variant& variant : scenario.variants) {
    const bool is_known =
        std::any_of(baseline.runs.begin(), baseline.runs.end(),
                    [&](const StoredRun& run) { return find_variant(run, variant.name); });
    if (!is_known) continue;
    const std::size_t index = subject_named(subjects, variant.name);
    const MatchingRuns matching =
        matching_runs(baseline, environment_of(measurement.device), variant, subjects[index].anchor,
                      libraries_in_words(measurement.variants[index].libraries));
    if (!matching.units.empty() || matching.only_of_other_devices) continue;
    // A calibrated knob differs from run to run, so its value does not change the scenario.
    const bool is_calibrated = measurement.traced && measurement.traced->calibrated &&
                               !measurement.traced->calibrated->is_kept;
    if (is_calibrated && latest(baseline, variant) == nullptr) continue;
    return matching.reason + raw_words_against_latest(baseline, variant, measurement, index);
  }
  return std::nullopt;
}

void decide_stored(const Expectation& assertion, const Scenario& scenario,
                   std::span<const Subject> subjects, const Measurement& measurement,
                   const JudgeSettings& settings, AssertionVerdict& verdict) {
  if (!settings.baseline) {
    verdict.outcome = Outcome::no_baseline;
    verdict.reason = no_baseline_reason(scenario);
  } else if (evidence_of(assertion) != Evidence::timed) {
    decide_stored_counts(assertion, scenario, subjects, measurement, settings, verdict);
  } else if (measurement.rounds.empty()) {
    verdict.reason = no_rounds_reason();
  } else {
    decide_timed(assertion, scenario, subjects, measurement, settings, verdict);
  }
}

}  // namespace stepgate
