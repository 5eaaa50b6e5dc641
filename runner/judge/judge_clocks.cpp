// SPDX-License-Identifier: MIT
#include "judge/judge_clocks.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/text/units.h"
#include "judge/assertions/timed_assertion.h"
#include "judge/verdict/sides.h"

namespace stepgate {
namespace {

// Clocks that differ by less count as equal, which is the resolution of the time stamps.
constexpr double same_clock = 0.0005;
constexpr double noted_clock = 0.001;

// The variant whose time a side measures; nullopt when the side is another metric or has several.
std::optional<std::string> variant_of(const Side& side) {
  if (!factor_of_single_metric(side)) return std::nullopt;
  const MetricOf metric = metrics_in(side).front();
  if (metric.stored || !is_step_time(metric.metric)) return std::nullopt;
  return metric.variant;
}

// Means over the segments of a variant, of logarithms.
struct Means {
  double log_step_nanoseconds = 0;
  double log_hertz = 0;
};

// Returns nullopt for interleaved rounds, whose variants share the clock.
std::optional<Means> means_of(std::span<const Round> rounds, int variant) {
  Means sums;
  double count = 0;
  for (const Round& round : rounds) {
    if (round.interleaved) return std::nullopt;
    for (const Segment& segment : round.segments) {
      if (segment.variant != variant) continue;
      if (!segment.sm_clock_hertz || segment.elapsed.count() <= 0) return std::nullopt;
      sums.log_step_nanoseconds += std::log(static_cast<double>(segment.elapsed.count()) /
                                            static_cast<double>(segment.steps));
      sums.log_hertz += std::log(*segment.sm_clock_hertz);
      ++count;
    }
  }
  if (count == 0) return std::nullopt;
  return Means{sums.log_step_nanoseconds / count, sums.log_hertz / count};
}

std::optional<Means> means_of(const Measurement& measurement, const std::string& name) {
  const auto found = std::find_if(measurement.variants.begin(), measurement.variants.end(),
                                  [&](const MeasuredVariant& one) { return one.name == name; });
  if (found == measurement.variants.end()) return std::nullopt;
  return means_of(measurement.rounds, static_cast<int>(found - measurement.variants.begin()));
}

// "0.1 % more time", "1.8 % fewer cycles", "as many cycles"
struct Amount {
  std::string_view more;
  std::string_view less;
  std::string_view equal;
};

std::string change_in_words(double ratio, const Amount& amount) {
  const double percent = 100 * std::abs(ratio - 1);
  if (percent < 0.05) return std::string(amount.equal);
  return fmt::format("{:.1f} % {}", percent, ratio >= 1 ? amount.more : amount.less);
}

// log(clock of the variant / clock of the first) in a round.
std::optional<double> clock_contrast(const Round& round, int variant) {
  const auto first = means_of({&round, 1}, 0);
  const auto other = means_of({&round, 1}, variant);
  if (!first || !other) return std::nullopt;
  return other->log_hertz - first->log_hertz;
}

bool clocks_differ(const Measurement& measurement, int variant, double level) {
  Expectation same;
  same.relation = Relation::about;
  same.within = noted_clock;
  TimedAssertion test(same, level, level);
  for (const Round& round : measurement.rounds) {
    const auto contrast = clock_contrast(round, variant);
    if (!contrast) return false;
    test.add(*contrast);
  }
  return test.outcome() == Outcome::fails;
}

}  // namespace

std::optional<ClockSplit> clock_split(const Expectation& assertion,
                                      const Measurement& measurement) {
  const auto left = variant_of(assertion.left);
  const auto right = variant_of(assertion.right);
  if (!left || !right || left == right) return std::nullopt;
  const auto of_left = means_of(measurement, *left);
  const auto of_right = means_of(measurement, *right);
  if (!of_left || !of_right) return std::nullopt;
  ClockSplit split;
  split.left = *left;
  split.right = *right;
  split.left_hertz = std::exp(of_left->log_hertz);
  split.right_hertz = std::exp(of_right->log_hertz);
  split.time_ratio = std::exp(of_left->log_step_nanoseconds - of_right->log_step_nanoseconds);
  split.clock_ratio = std::exp(of_left->log_hertz - of_right->log_hertz);
  split.cycle_ratio = split.time_ratio * split.clock_ratio;
  return split;
}

std::string in_words(const ClockSplit& split) {
  const std::string time = fmt::format(
      "{} takes {} {}: {}", split.left,
      change_in_words(split.time_ratio,
                      {"more time a step than", "less time a step than", "as much time a step as"}),
      split.right,
      change_in_words(split.cycle_ratio, {"more cycles", "fewer cycles", "as many cycles"}));
  const double left = split.left_hertz / hertz_per_megahertz;
  const double right = split.right_hertz / hertz_per_megahertz;
  if (std::abs(split.clock_ratio - 1) < same_clock) {
    return fmt::format("{} at the same SM clock, {:.0f} MHz", time, right);
  }
  return fmt::format("{}, and {} because its SM clock is {}, {:.0f} instead of {:.0f} MHz", time,
                     change_in_words(1 / split.clock_ratio, {"more", "less", "nothing"}),
                     split.clock_ratio < 1 ? "lower" : "higher", left, right);
}

std::vector<std::string> clock_notes(const Measurement& measurement, double level) {
  std::vector<std::string> notes;
  for (std::size_t variant = 1; variant < measurement.variants.size(); ++variant) {
    if (!clocks_differ(measurement, static_cast<int>(variant), level)) continue;
    const std::string& first = measurement.variants.front().name;
    const std::string& other = measurement.variants[variant].name;
    const auto of_first = means_of(measurement, first);
    const auto of_other = means_of(measurement, other);
    notes.push_back(fmt::format(
        "the SM clock is {:.0f} MHz while '{}' runs and {:.0f} MHz while '{}' does; the order was "
        "random, so the variants themselves move it",
        std::exp(of_other->log_hertz) / hertz_per_megahertz, other,
        std::exp(of_first->log_hertz) / hertz_per_megahertz, first));
  }
  return notes;
}

}  // namespace stepgate
