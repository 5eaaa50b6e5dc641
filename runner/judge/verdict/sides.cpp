// SPDX-License-Identifier: MIT
#include "judge/verdict/sides.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/require.h"
#include "base/seconds.h"
#include "base/stats/quantile.h"
#include "device/peak_rates.h"
#include "judge/verdict/mechanism.h"

namespace stepgate {
namespace {

// Sums over the segments of one variant in one round.
struct Totals {
  double steps = 0;
  double elapsed_seconds = 0;
  double log_step_seconds = 0;  // mean over the segments
  std::optional<double> host_seconds = 0;
  std::optional<double> processor_seconds = 0;
};

// A sum with an unknown part is unknown.
void add(const std::optional<std::chrono::nanoseconds>& time, std::optional<double>& sum) {
  if (!time) sum.reset();
  if (sum) *sum += seconds(*time);
}

Totals totals_of(const Round& round, int variant) {
  Totals totals;
  int segments = 0;
  for (const Segment& segment : round.segments) {
    if (segment.variant != variant) continue;
    ++segments;
    const double steps = static_cast<double>(segment.steps);
    totals.steps += steps;
    totals.elapsed_seconds += seconds(segment.elapsed);
    totals.log_step_seconds += std::log(std::max(seconds(segment.elapsed), 1e-12) / steps);
    add(segment.host_busy, totals.host_seconds);
    add(segment.host_processor, totals.processor_seconds);
  }
  require(segments > 0, "every round has segments of every variant");
  totals.log_step_seconds /= segments;
  return totals;
}

std::optional<double> longest(const std::vector<double>& step_seconds) {
  if (step_seconds.empty()) return std::nullopt;
  return std::ranges::max(step_seconds);
}

std::optional<double> slow_share(const std::vector<double>& step_seconds) {
  if (step_seconds.empty()) return std::nullopt;
  const double most = 2 * nearest_rank(step_seconds, 0.5);
  const auto slow = std::ranges::count_if(step_seconds, [&](double time) { return time > most; });
  return static_cast<double>(slow) / static_cast<double>(step_seconds.size());
}

std::optional<double> per(std::optional<double> value, double unit) {
  if (!value || unit <= 0) return std::nullopt;
  return *value / unit;
}

std::optional<double> metric_value(const MetricOf& metric, const Sources& sources) {
  if (metric.stored) return sources.stored ? sources.stored(metric) : std::nullopt;
  const std::size_t variant = subject_named(sources.subjects, metric.variant);
  const Subject& subject = sources.subjects[variant];
  if (counts_no_ranks(subject, metric.metric)) return 0;
  switch (row_of(metric.metric).evidence) {
    case Evidence::plan:
      return subject.count(metric.metric);
    case Evidence::exact:
      return sources.traced ? traced_value(*sources.traced, variant, metric.metric)
                            : subject.count(metric.metric);
    case Evidence::timed: {
      const auto amount = amount_per_step(subject, sources.device, metric.metric);
      if (!sources.round || !amount) return std::nullopt;
      return round_value(*sources.round, static_cast<int>(variant), *amount, metric.metric);
    }
    case Evidence::traced:
      return sources.traced ? traced_value(*sources.traced, variant, metric) : std::nullopt;
  }
  return std::nullopt;
}

double number_of(BoundClass bound) {
  return static_cast<double>(bound) + 1;
}

std::optional<double> factor_value(const Factor& factor, const Sources& sources) {
  if (const auto* number = std::get_if<double>(&factor)) return *number;
  if (const auto* metric = std::get_if<MetricOf>(&factor)) return metric_value(*metric, sources);
  if (const auto* bound = std::get_if<BoundClass>(&factor)) return number_of(*bound);
  const Subject& first = sources.subjects.front();
  const bool batch = std::get<PlanSize>(factor) == PlanSize::batch_bytes;
  return static_cast<double>(batch ? first.batch_bytes : first.param_bytes);
}

}  // namespace

std::size_t subject_named(std::span<const Subject> subjects, const std::string& variant) {
  const auto found = std::find_if(subjects.begin(), subjects.end(),
                                  [&](const Subject& subject) { return subject.name == variant; });
  require(found != subjects.end(), "assertions name variants of their scenario");
  return static_cast<std::size_t>(found - subjects.begin());
}

std::optional<double> amount_per_step(const Subject& subject, const DeviceIdentity* device,
                                      Metric metric) {
  if (!is_rate(metric) || metric == Metric::steps_per_s) return 1;
  if (metric == Metric::tokens_per_s) return subject.tokens;
  if (metric == Metric::samples_per_s_per_rank) return per(subject.batch_size, subject.ranks);
  if (metric != Metric::mfu) return subject.batch_size;
  if (!device || !subject.dtype) return std::nullopt;
  return per(subject.model_flops, peak_flops_per_second(*device, *subject.dtype).value_or(0));
}

bool counts_no_ranks(const Subject& subject, Metric metric) {
  using enum Metric;
  constexpr std::array of_ranks{all_reduces_per_step,      reduce_scatters_per_step,
                                all_gathers_per_step,      broadcasts_per_step,
                                payload_bytes_per_step,    collectives_per_step,
                                wire_bytes_per_step,       unbucketed_per_step,
                                late_collectives_per_step, early_comm_waits_per_step};
  return subject.ranks == 1 && !subject.is_counted &&
         std::ranges::find(of_ranks, metric) != of_ranks.end();
}

std::optional<double> round_value(const Round& round, int variant, double amount, Metric metric) {
  const Totals totals = totals_of(round, variant);
  if (is_rate(metric)) return amount / std::exp(totals.log_step_seconds);
  if (const auto percentile = percentile_of(metric)) {
    std::vector<double> steps = step_seconds_in(round, variant);
    if (steps.empty()) return std::nullopt;
    return nearest_rank(std::move(steps), *percentile);
  }
  switch (metric) {
    case Metric::step_ms_mean:
      return std::exp(totals.log_step_seconds);
    case Metric::step_ms_max:
      return longest(step_seconds_in(round, variant));
    case Metric::slow_step_share:
      return slow_share(step_seconds_in(round, variant));
    case Metric::host_us:
      return per(totals.host_seconds, totals.steps);
    case Metric::host_cpu_us:
      return per(totals.processor_seconds, totals.steps);
    case Metric::host_share:
      return per(totals.host_seconds, totals.elapsed_seconds);
    default:
      return std::nullopt;
  }
}

std::vector<double> step_seconds_in(const Round& round, int variant) {
  std::vector<double> all;
  for (const Segment& segment : round.segments) {
    if (segment.variant != variant) continue;
    for (const auto time : segment.step_times) all.push_back(seconds(time));
  }
  return all;
}

std::optional<double> traced_value(const TracedRound& round, std::size_t variant, Metric metric) {
  if (variant >= round.variants.size()) return std::nullopt;  // anchors are not traced
  const std::map<Metric, double>& values = round.variants[variant].values;
  const auto found = values.find(metric);
  return found == values.end() ? std::nullopt : std::optional(found->second);
}

std::optional<double> traced_value(const TracedRound& round, std::size_t variant,
                                   const MetricOf& metric) {
  if (variant >= round.variants.size()) return std::nullopt;
  const TracedStep& step = round.variants[variant];
  if (metric.metric == Metric::bound) return number_of(class_of(step.time));
  if (metric.metric != Metric::kernel_us) return traced_value(round, variant, metric.metric);
  const auto found = step.work.find(metric.kernel);
  return found == step.work.end() ? std::nullopt : std::optional(found->second.seconds);
}

std::optional<int> rank_behind(const Traced& traced, std::size_t variant, const MetricOf& metric) {
  if (variant >= traced.worst.size()) return std::nullopt;
  const WorstRanks& worst = traced.worst[variant];
  if (metric.metric == Metric::kernel_us) {
    const auto found = worst.kernels.find(metric.kernel);
    return found == worst.kernels.end() ? std::nullopt : std::optional(found->second);
  }
  const auto found = worst.metrics.find(metric.metric);
  return found == worst.metrics.end() ? std::nullopt : std::optional(found->second);
}

std::optional<double> side_value(const Side& side, const Sources& sources) {
  double sum = 0;
  for (const Product& factors : side) {
    double product = 1;
    for (const Factor& factor : factors) {
      const auto value = factor_value(factor, sources);
      if (!value) return std::nullopt;
      product *= *value;
    }
    sum += product;
  }
  return sum;
}

double nearly_nothing(const Expectation& assertion) {
  const std::vector<MetricOf> metrics = metrics_in(assertion);
  const MetricUnit unit = row_of(metrics.front().metric).unit;
  if (evidence_of(assertion) != Evidence::traced && unit != MetricUnit::ratio) return 1e-12;
  switch (unit) {
    case MetricUnit::ratio:
    case MetricUnit::count:
      return 1e-6;
    case MetricUnit::bytes:
      return 1e-3;
    case MetricUnit::seconds:
      return 1e-9;
    default:
      return 1e-12;
  }
}

std::optional<double> contrast_of(const Expectation& assertion, const Sources& sources) {
  const double least = nearly_nothing(assertion);
  const auto left = side_value(assertion.left, sources);
  const auto right = side_value(assertion.right, sources);
  if (!left || !right) return std::nullopt;
  return std::log(std::max(*left, least)) - std::log(std::max(*right, least));
}

std::vector<Sources> rounds_that_decide(const Expectation& assertion,
                                        std::span<const Subject> subjects,
                                        const Measurement& measurement) {
  std::vector<Sources> all;
  if (evidence_of(assertion) != Evidence::traced) {
    for (const Round& round : measurement.rounds) {
      all.push_back({.subjects = subjects, .round = &round, .device = &measurement.device});
    }
  } else if (measurement.traced) {
    for (const TracedRound& round : measurement.traced->rounds) {
      all.push_back({.subjects = subjects, .traced = &round});
    }
  }
  return all;
}

std::vector<MetricOf> metrics_in(const Side& side) {
  std::vector<MetricOf> metrics;
  for (const Product& factors : side) {
    for (const Factor& factor : factors) {
      if (const auto* metric = std::get_if<MetricOf>(&factor)) metrics.push_back(*metric);
    }
  }
  return metrics;
}

std::optional<MetricOf> unknown_metric(const Expectation& assertion, const Sources& sources) {
  for (const MetricOf& metric : metrics_in(assertion)) {
    if (!side_value({{metric}}, sources)) return metric;
  }
  return std::nullopt;
}

std::optional<double> factor_of_single_metric(const Side& side) {
  if (side.size() != 1) return std::nullopt;
  double product = 1;
  int metrics = 0;
  for (const Factor& factor : side.front()) {
    if (std::holds_alternative<PlanSize>(factor)) return std::nullopt;
    if (const auto* number = std::get_if<double>(&factor)) {
      product *= *number;
    } else {
      ++metrics;
    }
  }
  return metrics == 1 ? std::optional(product) : std::nullopt;
}

double limit_of(const Expectation& assertion) {
  return factor_of_single_metric(assertion.right).value_or(1) /
         factor_of_single_metric(assertion.left).value_or(1);
}

}  // namespace stepgate
