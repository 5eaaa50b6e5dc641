// SPDX-License-Identifier: MIT
#include "measure/trace/calibrate.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

#include "base/require.h"
#include "base/seconds.h"
#include "base/stats/quantile.h"
#include "base/stats/solve_monotone.h"
#include "base/text/diagnostic.h"
#include "scenario/knobs/field_value.h"
#include "scenario/knobs/fields.h"

namespace stepgate {
namespace {

// Batches are copied as 4-byte words.
constexpr double word_bytes = 4;
// Stricter than the assertion's tolerance, so that the value still passes when it is traced again.
constexpr double margin = 0.5;
// A search for a limit aims at this factor of it, or half way to the most that there is.
constexpr double beyond_a_limit = 1.25;

std::size_t index_of(std::span<const PlannedStep> plans, const std::string& variant) {
  const auto found = std::find_if(plans.begin(), plans.end(),
                                  [&](const StepPlan& plan) { return plan.variant == variant; });
  require(found != plans.end(), "a calibration names a variant of its scenario");
  return static_cast<std::size_t>(found - plans.begin());
}

// Formats a value as `--set` takes it: "64 KiB".
std::string value_text(const Field& field, double value, const CalibrationRange& range) {
  if (range.multiple_of <= 0) return field_value_text(field, value);
  return field_value_text(field, static_cast<std::int64_t>(value));
}

std::string percent(double share) {
  return fmt::format("{:.3g} %", 100 * share);
}

// Rounds to three digits, which is finer than any aim and can be read.
double rounded_to_digits(double value) {
  const double last = std::pow(10, std::floor(std::log10(value)) - 2);
  return std::round(value / last) * last;
}

double allowed(double value, const CalibrationRange& range) {
  if (range.multiple_of <= 0) return rounded_to_digits(value);
  const double rounded = std::round(value / range.multiple_of) * range.multiple_of;
  return std::clamp(rounded, range.least, range.most);
}

// A search aims at a value, and ends within a tolerance of it.
struct Target {
  double aim = 0;
  double tolerance = 0;  // relative to the aim
};

// Aims a quarter inside a limit, so that the value is still inside when it is measured again.
Target target_of(const Calibration& calibration) {
  if (!is_limit(calibration))
    return {.aim = calibration.value, .tolerance = margin * calibration.within};
  const double most = row_of(calibration.metric.metric).most;
  const double aim = calibration.relation == Relation::at_most
                         ? calibration.value / beyond_a_limit
                         : std::min(calibration.value * beyond_a_limit,
                                    calibration.value + (most - calibration.value) / 2);
  return {.aim = aim, .tolerance = std::abs(aim - calibration.value) / aim};
}

bool is_met(const Calibration& calibration, double value) {
  switch (calibration.relation) {
    case Relation::at_least:
      return value >= calibration.value;
    case Relation::at_most:
      return value <= calibration.value;
    default:
      return std::abs(value - calibration.value) <= calibration.within * calibration.value;
  }
}

double median(std::vector<double> values) {
  return values.empty() ? 0 : nearest_rank(std::move(values), 0.5);
}

double traced_metric(Device& device, const PlannedStep& plan, Metric metric,
                     const TraceRequest& request) {
  const Traced traced = trace_rounds(device, std::span(&plan, 1), request);
  std::vector<double> values;
  for (const TracedRound& round : traced.rounds) {
    const auto& seen = round.variants.front().values;
    const auto found = seen.find(metric);
    values.push_back(found == seen.end() ? 0 : found->second);
  }
  return median(std::move(values));
}

// Runs steps that are not traced, as rounds do, since the calls of traced ones take the host
// longer. In a process that has traced, those of other steps do too: the share is rather too large.
double host_share(Device& device, const PlannedStep& plan, const TraceRequest& request) {
  const std::unique_ptr<LoadedStep> step = device.load_into(only_slot, plan);
  const std::chrono::nanoseconds step_time = pilot_step_time(*step);
  const Observe observe{.wash_out_steps = steps_until_steady(plan, step_time),
                        .steps = traced_steps(std::span(&plan, 1), step_time)};
  std::vector<double> shares;
  for (std::int64_t round = 0; round < request.rounds; ++round) {
    const StepResult result = step->run(observe);
    if (!result.host_busy || !result.elapsed || result.elapsed->count() <= 0) continue;
    shares.push_back(std::min(1.0, seconds(*result.host_busy) / seconds(*result.elapsed)));
  }
  return median(std::move(shares));
}

class Calibrating {
 public:
  Calibrating(Device& device, const Calibration& calibration, const CalibrationRange& range,
              const PlansWith& plans_with, const TraceRequest& request)
      : device_(device),
        calibration_(calibration),
        field_(*field_named(calibration.knob)),
        range_(range),
        plans_with_(plans_with),
        request_(request) {}

  Calibrated run(std::span<const PlannedStep> as_written) {
    if (is_limit(calibration_)) {
      const Trial written{range_.start, metric_of(as_written)};
      if (is_met(calibration_, written.metric)) {
        Calibrated kept = found(written, 1);
        kept.is_kept = true;
        return kept;
      }
    }
    const Target target = target_of(calibration_);
    const Solution solution =
        solve_monotone([&](double argument) { return metric_at(allowed(argument, range_)); },
                       {.aim = target.aim,
                        .tolerance = target.tolerance,
                        .start = range_.start,
                        .least = range_.least,
                        .most = range_.most});
    return found(best_for(target.aim), solution.trials);
  }

 private:
  struct Trial {
    double argument = 0;
    double metric = 0;
  };

  double metric_of(std::span<const PlannedStep> plans) {
    const PlannedStep& plan = plans[index_of(plans, calibration_.metric.variant)];
    const Metric metric = calibration_.metric.metric;
    if (const auto known = plan.facts().count(metric)) return *known;
    if (metric == Metric::host_share) return host_share(device_, plan, request_);
    return traced_metric(device_, plan, metric, request_);
  }

  // Small whole numbers are tried again and again; each is measured once. NaN for a value that
  // allows no plan, or whose step the device has no memory for.
  double metric_at(double argument) {
    const auto known = std::ranges::find(tried_, argument, &Trial::argument);
    if (known != tried_.end()) return known->metric;
    try {
      const double metric = metric_of(plans_with_(value_text(field_, argument, range_)));
      tried_.push_back({argument, metric});
      return metric;
    } catch (const RequestError&) {
      if (tried_.empty()) throw;  // the step as written
    } catch (const DeviceMemoryFull&) {
      if (tried_.empty()) throw;
    }
    return std::numeric_limits<double>::quiet_NaN();
  }

  // The trial that comes closest among those that meet the aim; if none does, among all.
  const Trial& best_for(double aim) const {
    const auto rank = [&](const Trial& trial) {
      return std::pair(!is_met(calibration_, trial.metric), std::abs(trial.metric - aim));
    };
    return *std::ranges::min_element(tried_, {}, rank);
  }

  Calibrated found(const Trial& best, std::int64_t trials) const {
    Calibrated found{.knob = calibration_.knob,
                     .value = value_text(field_, best.argument, range_),
                     .aim = calibration_.text,
                     .metric = best.metric,
                     .unit = row_of(calibration_.metric.metric).unit,
                     .trials = trials,
                     .failure = {}};
    if (is_met(calibration_, best.metric)) return found;
    const MetricRow& row = row_of(calibration_.metric.metric);
    found.failure = fmt::format(
        "{} = {} comes closest to {}: {}.{} is {}", found.knob, found.value, calibration_.text,
        calibration_.metric.variant, row.name,
        row.unit == MetricUnit::ratio ? percent(best.metric) : fmt::format("{:.4g}", best.metric));
    return found;
  }

  Device& device_;
  const Calibration& calibration_;
  const Field& field_;
  const CalibrationRange& range_;
  const PlansWith& plans_with_;
  const TraceRequest& request_;
  std::vector<Trial> tried_;
};

}  // namespace

CalibrationRange calibration_range(const Calibration& calibration, const Scenario& scenario,
                                   std::span<const PlannedStep> as_written) {
  const Field* field = field_named(calibration.knob);
  require(field != nullptr, "a calibrated knob is a field");
  const std::size_t index = index_of(as_written, calibration.metric.variant);
  const FieldValue written = field->get({scenario.variants[index].knobs, {}, {}, {}});
  CalibrationRange range{
      .start = field->values.least, .least = field->values.least, .most = field->values.most};
  if (const auto* whole = std::get_if<std::int64_t>(&written)) {
    range.start = static_cast<double>(*whole);
  } else if (const auto* number = std::get_if<double>(&written)) {
    range.start = *number > 0 ? *number : 1;
  } else {
    // Begins with the number of words of a sample that the model reads, which is also the least
    // possible.
    const StepPlan& plan = as_written[index];
    const auto largest = *std::max_element(plan.batch_sizes.begin(), plan.batch_sizes.end());
    const auto number_bytes =
        static_cast<double>(bytes_of(scenario.variants[index].knobs.batch.format));
    range.start = static_cast<double>(plan.batch_bytes) / static_cast<double>(largest) *
                  word_bytes / number_bytes;
    range.least = range.start;
  }
  const auto multiple = static_cast<double>(field->values.multiple_of);
  const FieldKind kind = field->values.kind;
  range.multiple_of = kind == FieldKind::number  ? 0
                      : kind == FieldKind::bytes ? std::max(multiple, word_bytes)
                                                 : multiple;
  // The search multiplies and divides by factors, so it needs a least value above 0.
  range.least =
      std::max(range.least, range.multiple_of > 0 ? range.multiple_of : range.most * 1e-9);
  range.start = std::clamp(range.start, range.least, range.most);
  return range;
}

Calibrated calibrate(Device& device, const Calibration& calibration, const CalibrationRange& range,
                     const PlansWith& plans_with, std::span<const PlannedStep> as_written,
                     const TraceRequest& request) {
  return Calibrating(device, calibration, range, plans_with, request).run(as_written);
}

}  // namespace stepgate
