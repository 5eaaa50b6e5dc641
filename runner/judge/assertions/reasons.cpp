// SPDX-License-Identifier: MIT
#include "judge/assertions/reasons.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>

#include "base/text/number_words.h"
#include "judge/assertion_test.h"
#include "judge/assertions/estimate.h"
#include "judge/verdict/words.h"

namespace stepgate {
namespace {

std::optional<double> seconds_per_round(const Measurement& measurement, Evidence evidence) {
  const auto share = [](std::chrono::nanoseconds time, std::size_t rounds) {
    return std::chrono::duration<double>(time).count() / static_cast<double>(rounds);
  };
  if (evidence == Evidence::traced) {
    if (!measurement.traced || measurement.traced->rounds.empty()) return std::nullopt;
    return share(measurement.traced->wall_time, measurement.traced->rounds.size());
  }
  if (measurement.rounds.empty()) return std::nullopt;
  return share(measurement.wall_time - measurement.wall_time_before_rounds,
               measurement.rounds.size());
}

std::string rounds_in_words(std::int64_t rounds, Evidence evidence = Evidence::timed) {
  return fmt::format("{} {}round{}", rounds, evidence == Evidence::traced ? "traced " : "",
                     rounds == 1 ? "" : "s");
}

// Returns "1 round lies" or "2 rounds lie".
std::string lying_in_words(std::int64_t rounds) {
  return fmt::format("{} {}", rounds_in_words(rounds), rounds == 1 ? "lies" : "lie");
}

// "0.4 % against 23 %, ": gives both shares, since their ratio means little where one is near 0.
std::string traced_values(const Expectation& assertion, const AssertionVerdict& verdict) {
  const auto left = factor_of_single_metric(assertion.left);
  const auto right = factor_of_single_metric(assertion.right);
  if (verdict.evidence != Evidence::traced || !left || !right) return "";
  if (!verdict.left || !verdict.right) return "";
  return fmt::format("{} against {}, ", in_words(*verdict.left / *left, verdict.unit),
                     in_words(*verdict.right / *right, verdict.unit));
}

// Describes the evidence that an undecided comparison still needs.
std::string missing_in_words(const TimedEvidence& timed, Evidence evidence,
                             const Measurement& measurement, std::int64_t fewest_rounds) {
  const std::int64_t rounds = std::ssize(timed.contrasts);
  if (rounds < fewest_rounds) {
    return fmt::format("; {} cannot decide it, {} are the fewest that can",
                       rounds_in_words(rounds, evidence), fewest_rounds);
  }
  std::string words;
  if (timed.smallest_seen) {
    words += fmt::format("; a change of {} would have shown", share_in_words(*timed.smallest_seen));
  }
  if (timed.rounds_missing) {
    words += fmt::format("; {}about {} more rounds",
                         *timed.rounds_missing > most_within_reach ? "out of reach: " : "",
                         number_in_words(*timed.rounds_missing, 3));
    if (const auto seconds = seconds_per_round(measurement, evidence)) {
      words += fmt::format(" ({})", seconds_in_words(*timed.rounds_missing * *seconds));
    }
    words += " would decide it";
  } else {
    words += "; it lies too close to the limit for more rounds to decide it";
  }
  return words;
}

std::string missing_in_words(const Expectation& assertion, const NotRandomised& level,
                             Evidence evidence) {
  const std::int64_t rounds = std::ssize(level.contrasts);
  if (rounds < fewest_rounds_without_randomisation) {
    return fmt::format("; {} cannot decide it, {} are the fewest that can",
                       rounds_in_words(rounds, evidence), fewest_rounds_without_randomisation);
  }
  if (names_a_bound(assertion)) return "; its rounds do not agree";
  return "; its rounds lie on both sides of the limit";
}

// ", at most 1.049x by a one-sided 95 % bound", where bounds decide.
std::optional<std::string> bound_that_decided(const AssertionVerdict& verdict) {
  const std::optional<Bounds> bounds = bounds_that_decided(verdict);
  if (!bounds) return std::nullopt;
  return fmt::format(", {} by a one-sided {:.3g} % bound{}",
                     bounds_in_words(*bounds, *verdict.estimate), 100 * bounds->level,
                     bounds->low && bounds->high ? " each" : "");
}

// The ratio in total time, where it differs from that of the typical round.
std::string total_in_words(const Expectation& assertion, const AssertionVerdict& verdict) {
  const TimedEvidence& timed = *verdict.timed;
  if (!timed.total_ratio) return "";
  const double apart = std::abs(std::log(*timed.total_ratio / timed.ratio));
  if (apart <= negligible_share * std::abs(way_to_limit(assertion, timed.ratio))) return "";
  const double value = value_at(*timed.total_ratio, *verdict.estimate, verdict);
  return fmt::format("; {} in total time", value_in_words(value, *verdict.estimate));
}

// Explains that the assertion is undecided because a typical round and total time are on different
// sides of the limit.
std::string disagreement_in_words(const AssertionVerdict& verdict, const Measurement& measurement) {
  const TimedEvidence& timed = *verdict.timed;
  const auto words_of = [&](double ratio) {
    return value_in_words(value_at(ratio, *verdict.estimate, verdict), *verdict.estimate);
  };
  if (!timed.total_ratio) return "; the percentile of all steps is on its other side";
  const bool by_turns = measurement.segments_because.empty() && !measurement.rounds.empty();
  return fmt::format(
      "; typical and total time disagree, {} and {}, so it is not decided: few of its {} took far "
      "longer than the others",
      words_of(timed.ratio), words_of(*timed.total_ratio), by_turns ? "steps" : "rounds");
}

// "copy in 6 traced rounds, host in 1 traced round; it must be copy".
std::string classes_in_words(const Expectation& assertion, const NotRandomised& level) {
  const double wanted = side_value(assertion.right, {}).value();
  std::map<std::string, std::int64_t> rounds;  // by name of the class
  for (const double contrast : level.contrasts)
    ++rounds[in_words(wanted * std::exp(contrast), MetricUnit::bound_class)];
  std::vector<std::string> words;
  for (const auto& [bound, count] : rounds)
    words.push_back(fmt::format("{} in {}", bound, rounds_in_words(count, Evidence::traced)));
  return fmt::format("{}; {}", fmt::join(words, ", "),
                     limit_in_words(assertion, in_words(wanted, MetricUnit::bound_class)));
}

}  // namespace

MetricUnit unit_of(const Expectation& assertion) {
  const std::vector<MetricOf> metrics = metrics_in(assertion);
  return metrics.empty() ? MetricUnit::ratio : row_of(metrics.front().metric).unit;
}

std::string limit_in_words(const Expectation& assertion, const std::string& limit) {
  switch (assertion.relation) {
    case Relation::equal:
      return fmt::format("it must be {}", limit);
    case Relation::about:
      return fmt::format("it must be within {:.3g} % of {}", 100 * assertion.within.value_or(0),
                         limit);
    default:
      return fmt::format("the limit is {}", limit);
  }
}

std::optional<std::string> reason_without_trace(const Measurement& measurement) {
  if (!measurement.traced) return "not traced (--no-trace)";
  if (!measurement.traced->unavailable.empty()) {
    return fmt::format("trace unavailable: {}", measurement.traced->unavailable);
  }
  if (measurement.traced->rounds.empty()) return "no round was traced";
  return std::nullopt;
}

std::string planned_instead(const Expectation& assertion, double left, double right,
                            MetricUnit unit) {
  return fmt::format("; the plan says {}; {}", in_words(left, unit),
                     limit_in_words(assertion, in_words(right, unit)));
}

std::string absent_reason(const MetricOf& metric) {
  switch (metric.metric) {
    case Metric::copy_overlap:
    case Metric::h2d_gbps:
    case Metric::h2d_share:
      return fmt::format("'{}' copied nothing to the device in its traced steps, so it has no {}",
                         metric.variant, row_of(metric.metric).name);
    case Metric::short_kernel_share:
      return fmt::format(
          "no kernel of '{}' had a launch call of its own in the traced steps, so it has no {}",
          metric.variant, row_of(metric.metric).name);
    case Metric::host_us:
    case Metric::host_cpu_us:
    case Metric::host_share:
      return "this device does not know host time";
    case Metric::step_ms_p50:
    case Metric::step_ms_p95:
    case Metric::step_ms_p99:
    case Metric::step_ms_max:
    case Metric::slow_step_share:
      return "this device does not time single steps";
    case Metric::mfu:
      return fmt::format(
          "no data sheet's peak rate for the dtype of '{}' is known of this device, so it has no "
          "mfu",
          metric.variant);
    case Metric::pool_returns_per_step:
      return fmt::format("what '{}' does every so many steps comes round too late to count its {}",
                         metric.variant, row_of(metric.metric).name);
    case Metric::cycles_per_load:
      return fmt::format("the traced steps of '{}' do not tell the clock, hence no {}",
                         metric.variant, row_of(metric.metric).name);
    case Metric::kernel_gbps:
      return fmt::format(
          "no kernel of '{}' was limited by memory in the traced steps, so it has no {}",
          metric.variant, row_of(metric.metric).name);
    default:
      return fmt::format(
          "the {} of '{}' do not tell its {}",
          row_of(metric.metric).evidence == Evidence::timed ? "rounds" : "traced steps",
          metric.variant, metric_text(metric));
  }
}

std::string changing_count_reason(const MetricOf& metric, double first, double value,
                                  std::size_t round) {
  const MetricRow& row = row_of(metric.metric);
  return fmt::format(
      "{}.{} is {} in the first traced round and {} in round {}: no count to rely on",
      metric.variant, row.name, in_words(first, row.unit), in_words(value, row.unit), round);
}

std::string no_rounds_reason() {
  return "no round was timed on this device";
}

std::string counted_reason(const Expectation& assertion, const AssertionVerdict& verdict) {
  return fmt::format("{}; {}", in_words(verdict.left.value_or(0), verdict.unit),
                     limit_in_words(assertion, in_words(verdict.right.value_or(0), verdict.unit)));
}

std::string measured_in_words(const Expectation& assertion, const AssertionVerdict& verdict,
                              double confidence) {
  if (names_a_bound(assertion)) return classes_in_words(assertion, *verdict.not_randomised);
  const Estimate& estimate = *verdict.estimate;
  const auto words_of = [&](double value) { return value_in_words(value, estimate); };
  const std::string limit = limit_in_words(assertion, limit_in_words(estimate));
  if (verdict.not_randomised) {
    return fmt::format(
        "{}, {} to {} in {}, an estimate without an error rate; {}", words_of(estimate.value),
        words_of(estimate.interval->low), words_of(estimate.interval->high),
        rounds_in_words(std::ssize(verdict.not_randomised->contrasts), verdict.evidence), limit);
  }
  std::string words =
      traced_values(assertion, verdict) + words_of(estimate.value) +
      (compares_high_percentiles(assertion) ? " in the scored steps" : " in a typical round");
  if (const auto bound = bound_that_decided(verdict)) {
    words += *bound;
  } else if (estimate.interval) {
    words += fmt::format(", {:.3g} % interval [{}, {}]", 100 * confidence,
                         words_of(estimate.interval->low), words_of(estimate.interval->high));
  }
  words += fmt::format(" over {}",
                       rounds_in_words(std::ssize(verdict.timed->contrasts), verdict.evidence));
  return words + total_in_words(assertion, verdict) + "; " + limit;
}

std::string reason_by_rounds(const Expectation& assertion, const AssertionVerdict& verdict,
                             const Measurement& measurement, double confidence,
                             std::int64_t fewest_rounds) {
  std::string words = measured_in_words(assertion, verdict, confidence);
  if (verdict.outcome != Outcome::undecided) {
    const std::int64_t outliers = verdict.not_randomised ? verdict.not_randomised->outliers : 0;
    return outliers == 0 ? words
                         : words + fmt::format("; {} on its other side", lying_in_words(outliers));
  }
  if (verdict.timed && verdict.timed->held_back_by_total)
    return words + disagreement_in_words(verdict, measurement);
  return words +
         (verdict.not_randomised
              ? missing_in_words(assertion, *verdict.not_randomised, verdict.evidence)
              : missing_in_words(*verdict.timed, verdict.evidence, measurement, fewest_rounds));
}

std::string ranks_in_words(const Expectation& assertion, std::span<const Subject> subjects,
                           const Traced& traced) {
  std::vector<MetricOf> named;
  std::string words;
  for (const MetricOf& metric : metrics_in(assertion)) {
    if (metric.stored || std::ranges::find(named, metric) != named.end()) continue;
    const std::size_t variant = subject_named(subjects, metric.variant);
    const auto rank = rank_behind(traced, variant, metric);
    if (!rank) continue;
    named.push_back(metric);
    words += fmt::format("{}{}.{} is rank {}'s", words.empty() ? "; " : ", ", metric.variant,
                         metric_text(metric), *rank);
  }
  return words;
}

std::string reason_in_doubt(const std::string& doubt, const Expectation& assertion,
                            const AssertionVerdict& verdict, double confidence) {
  return fmt::format("{}; measured, but not to be trusted: {}", doubt,
                     measured_in_words(assertion, verdict, confidence));
}

std::string another_step_reason(const Measurement& measurement) {
  const AnotherStep& found = *measurement.another_step;
  const auto name = [&](int variant) {
    return measurement.variants[static_cast<std::size_t>(variant)].name;
  };
  std::string words = fmt::format("variant '{}' ", name(found.variant));
  if (found.rank > 0) {
    words += fmt::format("is another step on rank {} than on rank 0: ", found.rank);
  } else if (found.variant == found.against) {
    words += "does not repeat its own first steps: ";
  } else {
    words += fmt::format("is another step than '{}': ", name(found.against));
  }
  if (found.after_the_rounds) words += "begun again after the rounds, ";
  if (found.parameter.empty()) {
    return words + fmt::format(
                       "at step {} its loss is {:.8g} instead of {:.8g}, and they may "
                       "differ by {:.2g} of the larger",
                       found.step, found.value, found.expected, found.bound);
  }
  if (!std::isfinite(found.value)) {
    return words +
           fmt::format("at step {} the gradient of '{}' is whole and finite in one of them alone",
                       found.step, found.parameter);
  }
  return words + fmt::format(
                     "at step {} its gradient of '{}' differs by {} %, and they may differ "
                     "by {} %",
                     found.step, found.parameter, number_in_words(100 * found.value, 2),
                     number_in_words(100 * found.bound, 2));
}

std::vector<std::string> not_compared_notes(const Measurement& measurement) {
  const auto names_of = [&](const std::vector<int>& variants) {
    std::vector<std::string> names;
    for (const int variant : variants)
      names.push_back(
          fmt::format("'{}'", measurement.variants[static_cast<std::size_t>(variant)].name));
    return fmt::format("{}", fmt::join(names, ", "));
  };
  std::vector<std::string> notes;
  for (const NotCompared& pairs : measurement.not_compared) {
    notes.push_back(fmt::format("{} of {} are not compared with those of {}: {}",
                                pairs.gradients_alone ? "gradients" : "losses and gradients",
                                names_of(pairs.variants), names_of(pairs.against), pairs.reason));
  }
  return notes;
}

std::string unsteady_note(const Measurement& measurement) {
  return fmt::format("the step times were still drifting after {} steps of warm-up",
                     measurement.warmup_steps);
}

std::string full_record_note(const Measurement& measurement) {
  return fmt::format(
      "it ended after {}, whose record takes the {} MiB that are kept; with --ledger those of "
      "the "
      "next run are added",
      rounds_in_words(std::ssize(measurement.rounds)), most_bytes_kept >> 20);
}

std::string budget_reason(const Measurement& measurement, const MeasureKnobs& knobs) {
  const ExpectedCost& expected = measurement.expected;
  if (knobs.rounds < expected.fewest_rounds) {
    return fmt::format("'measure.rounds' allows {}, and no verdict takes fewer than {}; raise it",
                       rounds_in_words(knobs.rounds), expected.fewest_rounds);
  }
  const double round = std::chrono::duration<double>(expected.round).count();
  const double needed = std::chrono::duration<double>(measurement.wall_time).count() +
                        round * static_cast<double>(expected.fewest_rounds);
  return fmt::format(
      "its {} s have room for {}, and no verdict takes fewer than {}, {} each; raise "
      "'measure.max_seconds' or --budget to {:.0f} s",
      number_in_words(knobs.max_seconds, 3), rounds_in_words(expected.most_rounds),
      expected.fewest_rounds, seconds_in_words(round), std::ceil(1.2 * needed));
}

}  // namespace stepgate
