// SPDX-License-Identifier: MIT
// Decides assertions: counts by comparison, timed and traced metrics by their tests. Assertions of
// [expect] are decided only inside the scenario's regime.
#include "judge/judge.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/seconds.h"
#include "base/stats/quantile.h"
#include "judge/assertions/counted_assertion.h"
#include "judge/assertions/reasons.h"
#include "judge/decide_by_rounds.h"
#include "judge/judge_clocks.h"
#include "judge/judge_environment.h"
#include "judge/mechanism/diagnose.h"
#include "judge/stored/stored_assertion.h"
#include "judge/verdict/words.h"

namespace stepgate {
namespace {

VariantSummary summary_of(const Subject& subject, int variant, const Measurement& measurement) {
  double steps = 0;
  double elapsed = 0;
  double host_busy = 0;
  bool host_known = true;
  double cycles = 0;
  bool clock_known = true;
  std::vector<double> step_times;
  for (const Round& round : measurement.rounds) {
    for (const Segment& segment : round.segments) {
      if (segment.variant != variant) continue;
      steps += static_cast<double>(segment.steps);
      elapsed += seconds(segment.elapsed);
      host_known = host_known && segment.host_busy;
      host_busy += seconds(segment.host_busy.value_or(std::chrono::nanoseconds(0)));
      clock_known = clock_known && segment.sm_clock_hertz;
      cycles += seconds(segment.elapsed) * segment.sm_clock_hertz.value_or(0);
      for (const auto time : segment.step_times) step_times.push_back(seconds(time));
    }
  }
  VariantSummary summary;
  summary.name = subject.name;
  summary.allocator_simulation = subject.allocator_simulation;
  if (elapsed > 0) {
    summary.step_seconds_mean = elapsed / steps;
    if (subject.batch_size) summary.samples_per_second = *subject.batch_size * steps / elapsed;
    if (host_known) summary.host_share = host_busy / elapsed;
    if (clock_known) {
      summary.sm_clock_hertz = cycles / elapsed;
      summary.cycles_per_step = cycles / steps;
    }
  }
  if (!step_times.empty()) {
    summary.step_seconds_p50 = nearest_rank(step_times, 0.50);
    summary.step_seconds_p95 = nearest_rank(step_times, 0.95);
  }
  return summary;
}

// Returns a summary of each subject, in order, with the counts that assertions of the scenario
// name. It is for readers and decides nothing. It has the mean over all scored steps, and
// percentiles by nearest rank over single step times; they are absent without rounds or where the
// device does not time steps.
std::vector<VariantSummary> summaries_of(const Scenario& scenario,
                                         std::span<const Subject> subjects,
                                         const Measurement& measurement) {
  std::vector<VariantSummary> summaries;
  for (const Subject& subject : subjects) {
    summaries.push_back(summary_of(subject, static_cast<int>(summaries.size()), measurement));
    summaries.back().peak_bytes =
        static_cast<std::int64_t>(subject.count(Metric::peak_live).value_or(0));
  }
  for (const std::vector<Expectation>* assertions : {&scenario.regime, &scenario.expect}) {
    for (const Expectation& assertion : *assertions) {
      for (const MetricOf& metric : metrics_in(assertion)) {
        if (metric.stored || row_of(metric.metric).evidence >= Evidence::timed) continue;
        const std::size_t variant = subject_named(subjects, metric.variant);
        const auto count = counts_no_ranks(subjects[variant], metric.metric)
                               ? std::optional(0.0)
                               : subjects[variant].count(metric.metric);
        if (count) summaries[variant].counts[metric.metric] = *count;
      }
    }
  }
  return summaries;
}

AssertionVerdict blank(const Expectation& assertion) {
  AssertionVerdict verdict;
  verdict.name = assertion.name;
  verdict.text = assertion.text;
  verdict.place = assertion.place;
  verdict.evidence = evidence_of(assertion);
  verdict.unit = unit_of(assertion);
  return verdict;
}

class Judge {
 public:
  Judge(const Scenario& scenario, std::span<const Subject> subjects, const Measurement& measurement,
        const JudgeSettings& settings, const std::optional<std::string>& disturbance)
      : scenario_(scenario),
        subjects_(subjects),
        measurement_(measurement),
        settings_(settings),
        disturbance_(disturbance) {}

  std::vector<AssertionVerdict> regime() const {
    std::vector<AssertionVerdict> verdicts;
    for (const Expectation& assertion : scenario_.regime)
      verdicts.push_back(decide(assertion, settings_.earlier.regime));
    return verdicts;
  }

  std::vector<AssertionVerdict> assertions() const {
    std::vector<AssertionVerdict> verdicts;
    for (const Expectation& assertion : scenario_.expect)
      verdicts.push_back(decide(assertion, settings_.earlier.expect));
    return verdicts;
  }

 private:
  AssertionVerdict decide(const Expectation& assertion, const EarlierRounds& earlier) const {
    AssertionVerdict verdict = blank(assertion);
    if (names_stored(assertion)) {
      verdict.about_stored_runs = true;
      decide_stored(assertion, scenario_, subjects_, measurement_, settings_, verdict);
    } else if (verdict.evidence < Evidence::timed) {
      decide_counted(assertion, subjects_, measurement_, {}, verdict);
    } else {
      decide_by_rounds(assertion, scenario_, subjects_, measurement_, settings_, earlier,
                       disturbance_, verdict);
    }
    return verdict;
  }

  const Scenario& scenario_;
  std::span<const Subject> subjects_;
  const Measurement& measurement_;
  const JudgeSettings& settings_;
  const std::optional<std::string>& disturbance_;
};

Verdict verdict_of(const Scenario& scenario, const DeviceIdentity& device,
                   const JudgeSettings& settings) {
  Verdict verdict;
  verdict.scenario = scenario.name;
  verdict.point = scenario.point;
  verdict.claim = scenario.claim;
  verdict.steps = described_steps(scenario.variants);
  verdict.device = device;
  verdict.alpha = settings.alpha;
  verdict.suite_alpha = settings.suite_alpha;
  verdict.suite_lines = settings.suite_lines;
  verdict.stored_lines = settings.stored_lines;
  verdict.beta = settings.beta;
  verdict.confidence = scenario.measure.confidence;
  return verdict;
}

// Returns the pairs of variants that timed or traced assertions compare, each once: those of failed
// assertions first, then those of undecided ones. If there are none, returns the first variant with
// each other variant.
std::vector<PairToExplain> pairs_to_explain(const Scenario& scenario,
                                            std::span<const Subject> subjects,
                                            const Measurement& measurement,
                                            std::span<const AssertionVerdict> verdicts) {
  std::vector<PairToExplain> pairs;
  for (const Outcome outcome :
       {Outcome::fails, Outcome::undecided, Outcome::passes, Outcome::skipped}) {
    for (std::size_t index = 0; index < scenario.expect.size(); ++index) {
      const Expectation& assertion = scenario.expect[index];
      if (verdicts[index].outcome != outcome || !has_error_rate(assertion)) continue;
      const auto [first, other] =
          std::minmax({subject_named(subjects, only_metric(assertion.left)->variant),
                       subject_named(subjects, only_metric(assertion.right)->variant)});
      const bool known =
          std::ranges::any_of(pairs, [&, first = first, other = other](const PairToExplain& pair) {
            return pair.first == first && pair.other == other;
          });
      if (!known) pairs.push_back({.first = first, .other = other});
    }
  }
  if (pairs.empty()) {
    for (std::size_t other = 1; other < subjects.size(); ++other) pairs.push_back({.other = other});
  }
  for (PairToExplain& pair : pairs)
    pair.timed_ratio = timed_ratio(measurement, pair.first, pair.other);
  return pairs;
}

// Adds the results of the trace, and whether it matches the plans.
void add_mechanism(const Scenario& scenario, std::span<const Subject> subjects,
                   const Measurement& measurement, Verdict& verdict) {
  const Traced& traced = *measurement.traced;
  subjects = subjects.first(std::min(subjects.size(), scenario.variants.size()));
  if (traced.calibrated && !traced.calibrated->is_kept) verdict.calibrated = traced.calibrated;
  verdict.mechanism =
      mechanism_of(subjects, traced, verdict.variants,
                   pairs_to_explain(scenario, subjects, measurement, verdict.assertions));
  for (std::string& note : shorter_trace_notes(subjects, *verdict.mechanism))
    verdict.notes.push_back(std::move(note));
  for (std::string& note : unsteady_notes(subjects, traced)) {
    verdict.notes.push_back(std::move(note));
  }
  if (!traced.not_drawn.empty()) verdict.notes.push_back(traced.not_drawn);
  for (std::string& note : library_record_notes(traced)) verdict.notes.push_back(std::move(note));
  if (!traced.not_as_planned.empty()) verdict.broken = traced.not_as_planned;
}

}  // namespace

// Compares with a tolerance, since counts may be rounded fractions such as 1/3.
bool relation_holds(const Expectation& assertion, double left, double right) {
  const double rounding = 1e-9 * std::max(std::abs(left), std::abs(right));
  switch (assertion.relation) {
    case Relation::less:
      return left < right - rounding;
    case Relation::at_most:
      return left <= right + rounding;
    case Relation::equal:
      return std::abs(left - right) <= rounding;
    case Relation::at_least:
      return left >= right - rounding;
    case Relation::greater:
      return left > right + rounding;
    case Relation::about:
      return std::abs(left - right) <= assertion.within.value_or(0) * std::abs(right) + rounding;
  }
  return false;
}

void limit_to_regime(const Scenario& scenario, const std::vector<AssertionVerdict>& regime,
                     std::vector<AssertionVerdict>& assertions) {
  const AssertionVerdict* outside = nullptr;
  for (const AssertionVerdict& line : regime) {
    if (line.outcome == Outcome::passes) continue;
    if (!outside || line.outcome == Outcome::fails) outside = &line;
  }
  if (!outside) return;
  const bool failed = outside->outcome == Outcome::fails;
  for (std::size_t index = 0; index < assertions.size(); ++index) {
    AssertionVerdict& verdict = assertions[index];
    if (verdict.evidence < Evidence::timed) continue;
    // A claim is limited to its regime. But being slower than stored runs of the same variant
    // remains a finding outside of it, since the slowdown itself may have moved the step out of
    // its regime.
    if (names_stored(scenario.expect[index]) && verdict.outcome == Outcome::fails) {
      verdict.reason +=
          fmt::format("; outside its regime too: {} ({})", outside->text, outside->reason);
      continue;
    }
    verdict.outcome = failed ? Outcome::skipped : Outcome::undecided;
    verdict.reason =
        failed
            ? fmt::format("outside its regime: {} ({})", outside->text, outside->reason)
            : fmt::format("its regime is not established: {} ({})", outside->text, outside->reason);
  }
}

Verdict judge(const Scenario& scenario, std::span<const Subject> subjects,
              const Measurement& measurement, const JudgeSettings& settings) {
  Verdict verdict = verdict_of(scenario, measurement.device, settings);
  const EnvironmentLog environment = environment_of(measurement);
  verdict.environment = environment.in_words();
  verdict.disturbance = environment.disturbance();
  const Judge judge(scenario, subjects, measurement, settings, verdict.disturbance);
  verdict.regime = judge.regime();
  verdict.assertions = judge.assertions();
  limit_to_regime(scenario, verdict.regime, verdict.assertions);
  verdict.outcome = worst(verdict.assertions);
  // Anchors are not variants of the scenario.
  verdict.variants = summaries_of(
      scenario, subjects.first(std::min(subjects.size(), scenario.variants.size())), measurement);
  verdict.batch_bytes = subjects.front().batch_bytes;
  verdict.param_bytes = subjects.front().param_bytes;
  if (measurement.traced) add_mechanism(scenario, subjects, measurement, verdict);
  verdict.planned_only = measurement.planned_only;
  verdict.rounds = std::ssize(measurement.rounds);
  verdict.earlier_runs = settings.earlier.runs;
  verdict.earlier_rounds = most_rounds(settings.earlier);
  verdict.loads_per_round = std::ssize(measurement.variants);
  verdict.device_time = measurement.device_time;
  verdict.wall_time = measurement.wall_time;
  for (std::string& note : library_notes(measurement)) verdict.notes.push_back(std::move(note));
  for (std::string& note : not_compared_notes(measurement))
    verdict.notes.push_back(std::move(note));
  for (std::size_t variant = 0; variant < measurement.variants.size(); ++variant) {
    if (!subjects[variant].has_replaced_kernels || !measurement.variants[variant].audits.empty())
      continue;
    verdict.notes.push_back(fmt::format(
        "no launch of '{}' was audited beside stepgate's own kernels", subjects[variant].name));
  }
  if (!measurement.steady) verdict.notes.push_back(unsteady_note(measurement));
  if (measurement.record_full) verdict.notes.push_back(full_record_note(measurement));
  const bool split =
      std::any_of(verdict.assertions.begin(), verdict.assertions.end(),
                  [](const AssertionVerdict& assertion) { return assertion.clocks.has_value(); });
  if (!split) {  // otherwise the assertions report clocks
    // Tests each direction at beta, as a passing assertion does.
    for (std::string& note : clock_notes(measurement, 2 * settings.beta)) {
      verdict.notes.push_back(std::move(note));
    }
  }
  if (!measurement.broken.empty()) verdict.broken = measurement.broken;
  if (measurement.another_step) verdict.broken = another_step_reason(measurement);
  return verdict;
}

std::vector<AssertionVerdict> judge_counts(const Scenario& scenario,
                                           std::span<const Subject> subjects,
                                           const Traced& traced) {
  Measurement measurement;
  measurement.traced = traced;
  std::vector<AssertionVerdict> verdicts;
  for (const Expectation& assertion : scenario.expect) {
    if (names_stored(assertion) || evidence_of(assertion) >= Evidence::timed) continue;
    decide_counted(assertion, subjects, measurement, {}, verdicts.emplace_back(blank(assertion)));
  }
  return verdicts;
}

namespace {

std::optional<std::string> unmet_link(const DeviceIdentity& device, std::size_t gpus) {
  for (std::size_t rank = 0; rank < gpus; ++rank) {
    for (std::size_t other = rank + 1; other < gpus; ++other) {
      const std::string link = link_between(device, rank, other);
      if (link == nvlink) continue;
      return link.empty()
                 ? fmt::format(
                       "needs {}, and how the GPUs of ranks {} and {} are linked is not known",
                       nvlink, rank, other)
                 : fmt::format("needs {}, and the GPUs of ranks {} and {} are linked by {}", nvlink,
                               rank, other, link);
    }
  }
  return std::nullopt;
}

}  // namespace

std::optional<std::string> unmet_requirement(const Scenario& scenario,
                                             const DeviceIdentity& device) {
  const auto has_slower_links = [](const Variant& variant) {
    const RanksKnobs& ranks = variant.knobs.ranks;
    return ranks.count > 1 && ranks.collectives.link_gbps > 0;
  };
  if (device.kind == DeviceKind::cuda && std::ranges::any_of(scenario.variants, has_slower_links)) {
    return fmt::format("needs --device simulated, since 'ranks.link_gbps' slows down no link of {}",
                       device.name);
  }
  const Requirements& needs = scenario.requirements;
  if (needs.compute && device.compute_capability < *needs.compute) {
    return fmt::format("needs compute capability {:.1f}, {} has {:.1f}", *needs.compute,
                       device.name, device.compute_capability);
  }
  if (needs.copy_engines && device.copy_engines < *needs.copy_engines) {
    return fmt::format("needs {} copy engines, {} has {}", *needs.copy_engines, device.name,
                       device.copy_engines);
  }
  const std::int64_t gpus = std::max<std::int64_t>(needs.gpus.value_or(1), ranks_needed(scenario));
  if (device.gpus && gpus > *device.gpus) {
    return fmt::format("needs {} GPUs, there {} {} for a step", gpus,
                       *device.gpus == 1 ? "is" : "are", *device.gpus);
  }
  if (needs.processors && device.processors && *device.processors < *needs.processors) {
    return fmt::format("needs {} processors, there {} {}", *needs.processors,
                       *device.processors == 1 ? "is" : "are", *device.processors);
  }
  if (needs.link == RequiredLink::nvlink) {
    if (auto unmet = unmet_link(device, static_cast<std::size_t>(gpus))) return unmet;
  }
  if (needs.free_memory_bytes && device.free_memory_bytes < *needs.free_memory_bytes) {
    const auto bytes = [](std::int64_t count) {
      return in_words(static_cast<double>(count), MetricUnit::bytes);
    };
    return fmt::format("needs {} of free device memory, {} has {}", bytes(*needs.free_memory_bytes),
                       device.name, bytes(device.free_memory_bytes));
  }
  return std::nullopt;
}

Verdict skipped_verdict(const Scenario& scenario, const DeviceIdentity& device,
                        const std::string& reason, const JudgeSettings& settings) {
  Verdict verdict = verdict_of(scenario, device, settings);
  for (const Expectation& assertion : scenario.expect) {
    AssertionVerdict skipped = blank(assertion);
    skipped.outcome = Outcome::skipped;
    skipped.reason = reason;
    verdict.assertions.push_back(std::move(skipped));
  }
  verdict.outcome = Outcome::skipped;
  verdict.skipped_because = reason;
  return verdict;
}

}  // namespace stepgate
