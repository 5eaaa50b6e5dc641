// SPDX-License-Identifier: MIT
#include "measure/trace/calibrate.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/require.h"
#include "base/stats/quantile.h"
#include "base/stats/solve_monotone.h"
#include "scenario/knobs/field_value.h"
#include "scenario/knobs/fields.h"

namespace stepgate {
namespace {

// Batches are copied as 4-byte words.
constexpr double word_bytes = 4;
// Stricter than the assertion's tolerance, so that the value still passes when it is traced again.
constexpr double margin = 0.5;

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

double allowed(double value, const CalibrationRange& range) {
  if (range.multiple_of <= 0) return value;
  const double rounded = std::round(value / range.multiple_of) * range.multiple_of;
  return std::clamp(rounded, range.least, range.most);
}

std::string percent(double share) {
  return fmt::format("{:.3g} %", 100 * share);
}

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
    range.start = *number;
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
                     const PlansWith& plans_with, const TraceRequest& request) {
  const Field* field = field_named(calibration.knob);
  require(field != nullptr, "a calibrated knob is a field");
  const auto metric_at = [&](double argument) {
    const std::vector<PlannedStep> plans =
        plans_with(value_text(*field, allowed(argument, range), range));
    const std::size_t index = index_of(plans, calibration.metric.variant);
    if (const auto known = plans[index].facts().count(calibration.metric.metric)) return *known;
    const Traced traced = trace_rounds(device, std::span(&plans[index], 1), request);
    std::vector<double> values;
    for (const TracedRound& round : traced.rounds) {
      const auto& seen = round.variants.front().values;
      const auto found = seen.find(calibration.metric.metric);
      values.push_back(found == seen.end() ? 0 : found->second);
    }
    return values.empty() ? 0 : nearest_rank(values, 0.5);
  };
  const Solution solution = solve_monotone(metric_at, {.aim = calibration.value,
                                                       .tolerance = margin * calibration.within,
                                                       .start = range.start,
                                                       .least = range.least,
                                                       .most = range.most});
  Calibrated found{.knob = calibration.knob,
                   .value = value_text(*field, allowed(solution.argument, range), range),
                   .aim = calibration.text,
                   .metric = solution.value,
                   .unit = row_of(calibration.metric.metric).unit,
                   .trials = solution.trials,
                   .failure = {}};
  const double distance = std::abs(solution.value - calibration.value);
  if (distance <= calibration.within * calibration.value) return found;
  const MetricRow& metric = row_of(calibration.metric.metric);
  found.failure =
      fmt::format("{} = {} comes closest to {}: {}.{} is {}", found.knob, found.value,
                  calibration.text, calibration.metric.variant, metric.name,
                  metric.unit == MetricUnit::ratio ? percent(solution.value)
                                                   : fmt::format("{:.4g}", solution.value));
  return found;
}

}  // namespace stepgate
