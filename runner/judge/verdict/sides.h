// SPDX-License-Identifier: MIT
// Computes the values of the two sides of an assertion: from the subject alone, in one timed round,
// or in one traced round.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>

#include "measure/rounds/measurement.h"
#include "measure/subject.h"
#include "scenario/assertions/expectation.h"

namespace stepgate {

// The sources of values. Plan metrics are counts of the subject. Exact metrics come from the traced
// round where there is one, and otherwise from the subject; measure/trace/conformance.h ensures
// that both agree. Timed and traced metrics come from their rounds.
struct Sources {
  std::span<const Subject> subjects;
  const Round* round = nullptr;
  const TracedRound* traced = nullptr;
  const DeviceIdentity* device = nullptr;  // of those rounds; mfu uses its peak rate
  // Returns the value of a metric with `stored.`; an empty function where there is no baseline.
  std::function<std::optional<double>(const MetricOf&)> stored = {};
};

// The index of the subject with that name, which must exist.
std::size_t subject_named(std::span<const Subject>, const std::string& variant);

// The amount per step that a rate counts: samples, tokens, or for mfu the seconds that its FLOPs
// take at the device's peak rate. nullopt where any of it is unknown; 1 for metrics that are not
// rates.
std::optional<double> amount_per_step(const Subject&, const DeviceIdentity*, Metric);

// The value of a timed metric for one variant in one round. Means and rates (`amount` per step) use
// the geometric mean of its segments, shares and host time use their totals, and percentiles use
// nearest rank over the steps of all its segments. nullopt where the device does not know it.
std::optional<double> round_value(const Round&, int variant, double amount, Metric);

// Lists the times of all scored steps of the variant, in order of execution. Empty where the device
// does not time single steps.
std::vector<double> step_seconds_in(const Round&, int variant);

// The value of a metric for one variant in one traced round; nullopt where the trace does not have
// it.
std::optional<double> traced_value(const TracedRound&, std::size_t variant, Metric);
// Like the above, but also for the time of one kernel and for the class.
std::optional<double> traced_value(const TracedRound&, std::size_t variant, const MetricOf&);

// Returns whether the metric counts what several ranks do together, but the subject has one rank.
// Then the count is 0, and counts and traces leave it out.
bool counts_no_ranks(const Subject&, Metric);

// The rank that supplies this value, where there are several. nullopt where no rank is worse than
// the others.
std::optional<int> rank_behind(const Traced&, std::size_t variant, const MetricOf&);

// The value in base units; nullopt when a metric of the side is unknown.
std::optional<double> side_value(const Side&, const Sources&);

// log(left / right) in the round. So that it is finite, a side of 0 counts as a small value: for a
// share a millionth, for a traced time a nanosecond, which is the resolution of traces, otherwise
// 1e-12.
std::optional<double> contrast_of(const Expectation&, const Sources&);
// The small value, in base units, by which 0 is replaced in contrast_of.
double nearly_nothing(const Expectation&);

// The timed or traced rounds whose contrasts decide the assertion, as sources of values. The
// arguments must outlive them.
std::vector<Sources> rounds_that_decide(const Expectation&, std::span<const Subject>,
                                        const Measurement&);

// The metrics of a side, in order.
std::vector<MetricOf> metrics_in(const Side&);

// The first metric of the assertion whose value is unknown; nullopt if all are known.
std::optional<MetricOf> unknown_metric(const Expectation&, const Sources&);

// The factor of a side that is a product of numbers and exactly one metric, as in "1.05 *
// baseline.samples_per_s". nullopt for any other side.
std::optional<double> factor_of_single_metric(const Side&);

// The limit of an assertion about two metrics, as a factor between them: 0.98 for "a.x >= 0.98 *
// b.x".
double limit_of(const Expectation&);

}  // namespace stepgate
