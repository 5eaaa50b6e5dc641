// SPDX-License-Identifier: MIT
// What the two sides of a sentence are worth: by the plan alone, or in one round.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>

#include "measure/measurement.h"
#include "plan/step_plan.h"
#include "scenario/expectation.h"

namespace stepgate {

// What a plan says about a metric, in its base unit; nothing for metrics that a plan cannot know.
// `counted` of the plan station, in every use but tests.
using Counted = std::function<std::optional<double>(const StepPlan&, Metric)>;

// Where values come from. The round is absent for sentences of plan evidence.
struct Sources {
  std::span<const StepPlan> plans;
  const Counted& counted;
  const Round* round = nullptr;
  // Of a metric with `stored.`; empty where there is no baseline, which knows nothing.
  std::function<std::optional<double>(const MetricOf&)> stored = {};
};

// The index of the variant's plan, which exists.
std::size_t plan_named(std::span<const StepPlan>, const std::string& variant);

// Of a timed metric, for one variant of one round: mean and rates from the geometric mean of its
// segments, shares and host time from their totals, percentiles by nearest rank over the steps
// of both. Nothing where the device does not know.
std::optional<double> round_value(const Round&, int variant, std::int64_t batch_size, Metric);

// In base units. Nothing when a metric of the side is unknown.
std::optional<double> side_value(const Side&, const Sources&);

// log(left / right) in the round. A side of zero counts as a trillionth, so that the contrast stays
// a number.
std::optional<double> contrast_of(const Expectation&, const Sources&);

// The metrics of a side or of a sentence, in order.
std::vector<MetricOf> metrics_in(const Side&);
std::vector<MetricOf> metrics_in(const Expectation&);

// The product of the numbers of a side that is one product of numbers and exactly one metric, as in
// "1.05 * baseline.samples_per_s". Nothing for any other side.
std::optional<double> factor_of_single_metric(const Side&);

}  // namespace stepgate
