// SPDX-License-Identifier: MIT
// Sentences about sentences.
#include "judge/reasons.h"

#include <fmt/format.h>

#include <cmath>
#include <functional>

#include "judge/words.h"

namespace stepgate {
namespace {

// What a timed sentence is about, in the terms that its author wrote: the ratio of two metrics, the
// value of one, or the ratio of the sides.
struct Terms {
  double scale;  // of left / right to the terms
  std::string limit;
  std::function<std::string(double)> in_words;
};

Terms terms_of(const Expectation& sentence, const SentenceVerdict& verdict) {
  const auto left = factor_of_single_metric(sentence.left);
  const auto right = factor_of_single_metric(sentence.right);
  if (left && right) {
    const double limit = *right / *left;
    return {limit, fmt::format("{:.6g}x", limit), factor_in_words};
  }
  if (left && metrics_in(sentence.right).empty()) {
    const double limit = verdict.right.value_or(0) / *left;
    const auto value_in_words = [unit = verdict.unit](double value) {
      return in_words(value, unit);
    };
    return {limit, value_in_words(limit), value_in_words};
  }
  return {1, "1x", factor_in_words};
}

std::optional<double> seconds_per_round(const Measurement& measurement, Evidence evidence) {
  if (evidence == Evidence::traced) {
    if (!measurement.traced || measurement.traced->rounds.empty()) return std::nullopt;
    return std::chrono::duration<double>(measurement.traced->wall_time).count() /
           static_cast<double>(measurement.traced->rounds.size());
  }
  if (measurement.rounds.empty()) return std::nullopt;
  double seconds = 0;
  for (const Round& round : measurement.rounds) {
    for (const Segment& segment : round.segments) {
      const double steps = static_cast<double>(segment.steps);
      const double washed = static_cast<double>(measurement.wash_out_steps);
      seconds += std::chrono::duration<double>(segment.elapsed).count() * (steps + washed) / steps;
    }
  }
  return seconds / static_cast<double>(measurement.rounds.size());
}

std::string rounds_in_words(std::int64_t rounds, Evidence evidence = Evidence::timed) {
  return fmt::format("{} {}round{}", rounds, evidence == Evidence::traced ? "traced " : "",
                     rounds == 1 ? "" : "s");
}

// "0.4 % against 23 %, ": a ratio of two shares says little where one of them is next to nothing.
std::string traced_values(const Expectation& sentence, const SentenceVerdict& verdict) {
  const auto left = factor_of_single_metric(sentence.left);
  const auto right = factor_of_single_metric(sentence.right);
  if (verdict.evidence != Evidence::traced || !left || !right) return "";
  if (!verdict.left || !verdict.right) return "";
  return fmt::format("{} against {}, ", in_words(*verdict.left / *left, verdict.unit),
                     in_words(*verdict.right / *right, verdict.unit));
}

// What an undecided sentence would need.
std::string missing_in_words(const TimedEvidence& timed, Evidence evidence,
                             const Measurement& measurement, std::int64_t fewest_rounds) {
  const std::int64_t rounds = std::ssize(timed.contrasts);
  if (rounds < fewest_rounds) {
    return fmt::format("; {} cannot decide it, {} are the fewest that can",
                       rounds_in_words(rounds, evidence), fewest_rounds);
  }
  std::string words;
  if (timed.smallest_seen) {
    words += fmt::format("; a change of {:.2g} % would have shown", 100 * *timed.smallest_seen);
  }
  if (timed.rounds_missing) {
    words += fmt::format("; about {:.0f} more rounds", *timed.rounds_missing);
    if (const auto seconds = seconds_per_round(measurement, evidence)) {
      words += fmt::format(" ({:.2g} s)", *timed.rounds_missing * *seconds);
    }
    words += " would decide it";
  } else {
    words += "; it lies too close to the limit for more rounds to decide it";
  }
  return words;
}

}  // namespace

MetricUnit unit_of(const Expectation& sentence) {
  const std::vector<MetricOf> metrics = metrics_in(sentence);
  return metrics.empty() ? MetricUnit::ratio : row_of(metrics.front().metric).unit;
}

std::string limit_in_words(const Expectation& sentence, const std::string& limit) {
  switch (sentence.relation) {
    case Relation::equal:
      return fmt::format("it must be {}", limit);
    case Relation::about:
      return fmt::format("it must be within {:.3g} % of {}", 100 * sentence.within.value_or(0),
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

std::string planned_instead(const Expectation& sentence, double left, double right,
                            MetricUnit unit) {
  return fmt::format("; the plan says {}; {}", in_words(left, unit),
                     limit_in_words(sentence, in_words(right, unit)));
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
    case Metric::kernel_gbps:
      return fmt::format(
          "no kernel of '{}' was limited by memory in the traced steps, so it has no {}",
          metric.variant, row_of(metric.metric).name);
    default:
      return fmt::format("the traced steps of '{}' do not tell its {}", metric.variant,
                         row_of(metric.metric).name);
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

std::string unknown_reason(const Expectation& sentence, const Sources& sources) {
  for (const MetricOf& metric : metrics_in(sentence)) {
    if (side_value({{metric}}, sources)) continue;
    switch (metric.metric) {
      case Metric::host_us:
      case Metric::host_share:
        return "this device does not know host time";
      case Metric::step_ms_p50:
      case Metric::step_ms_p95:
      case Metric::step_ms_p99:
        return "this device does not time single steps";
      default:
        return fmt::format("{} is not known", row_of(metric.metric).name);
    }
  }
  return "a value is not known";
}

std::string counted_reason(const Expectation& sentence, const SentenceVerdict& verdict) {
  return fmt::format("{}; {}", in_words(verdict.left.value_or(0), verdict.unit),
                     limit_in_words(sentence, in_words(verdict.right.value_or(0), verdict.unit)));
}

std::string measured_in_words(const Expectation& sentence, const SentenceVerdict& verdict,
                              double confidence) {
  const Terms terms = terms_of(sentence, verdict);
  const TimedEvidence& timed = *verdict.timed;
  std::string words = traced_values(sentence, verdict) + terms.in_words(terms.scale * timed.ratio);
  if (timed.interval) {
    words += fmt::format(", {:.3g} % interval [{}, {}]", 100 * confidence,
                         terms.in_words(terms.scale * timed.interval->low),
                         terms.in_words(terms.scale * timed.interval->high));
  }
  words +=
      fmt::format(" over {}; {}", rounds_in_words(std::ssize(timed.contrasts), verdict.evidence),
                  limit_in_words(sentence, terms.limit));
  return words;
}

std::string timed_reason(const Expectation& sentence, const SentenceVerdict& verdict,
                         const Measurement& measurement, double confidence,
                         std::int64_t fewest_rounds) {
  std::string words = measured_in_words(sentence, verdict, confidence);
  if (verdict.outcome == Outcome::undecided) {
    words += missing_in_words(*verdict.timed, verdict.evidence, measurement, fewest_rounds);
  }
  return words;
}

std::string environment_reason(const std::string& disturbance, const Expectation& sentence,
                               const SentenceVerdict& verdict, double confidence) {
  return fmt::format("environment: {}; measured, but not to be trusted: {}", disturbance,
                     measured_in_words(sentence, verdict, confidence));
}

std::string disagreement_reason(const Measurement& measurement) {
  const LossDisagreement& found = *measurement.disagreement;
  const auto name = [&](int variant) {
    return measurement.variants[static_cast<std::size_t>(variant)].name;
  };
  return fmt::format(
      "variant '{}' does not train what '{}' trains: at step {} its loss is {:.8g} instead of "
      "{:.8g}, and they may differ by {:.2g} of the larger",
      name(found.variant), name(found.against), found.step, found.loss, found.expected,
      found.bound);
}

std::string unsteady_note(const Measurement& measurement) {
  return fmt::format("the step times were still drifting after {} steps of warm-up",
                     measurement.warmup_steps);
}

std::string carry_over_note(const Measurement& measurement) {
  const Pilot& pilot = measurement.pilot;
  return fmt::format(
      "segments of {} steps and of four times as many disagree about the variants by {:.2g} %: "
      "something carries over from one segment to the next; a larger 'measure.steps' may help",
      pilot.segment_steps, 100 * pilot.disagreement);
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
      "its {:.3g} s have room for {}, and no verdict takes fewer than {}, {:.2g} s each; raise "
      "'measure.max_seconds' or --budget to {:.0f} s",
      knobs.max_seconds, rounds_in_words(expected.most_rounds), expected.fewest_rounds, round,
      std::ceil(1.2 * needed));
}

}  // namespace stepgate
