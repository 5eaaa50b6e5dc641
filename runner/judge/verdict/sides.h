// SPDX-License-Identifier: MIT
// The values of the two sides of an assertion: by the subject alone, in one timed round, or in one
// traced round.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>

#include "measure/rounds/measurement.h"
#include "measure/subject.h"
#include "scenario/assertions/expectation.h"

namespace stepgate {

// Where values come from. Plan metrics are counts of the subject. Exact ones come from the traced
// round where there is one, and from the subject elsewhere: measure/trace/conformance.h sees to it
// that both say the same. Timed and traced ones come from their rounds.
struct Sources {
  std::span<const Subject> subjects;
  const Round* round = nullptr;
  const TracedRound* traced = nullptr;
  const DeviceIdentity* device = nullptr;  // of those rounds: whose peak rate an mfu is of
  // The value of a metric with `stored.`; empty where there is no baseline, which knows nothing.
  std::function<std::optional<double>(const MetricOf&)> stored = {};
};

// The index of the subject with that name, which exists.
std::size_t subject_named(std::span<const Subject>, const std::string& variant);

// The amount a step that a rate counts: samples, tokens, or for mfu the seconds that its FLOPs take
// at the device's peak rate. Nothing where any of it is not known; 1 of what is no rate.
std::optional<double> amount_per_step(const Subject&, const DeviceIdentity*, Metric);

// The value of a timed metric, for one variant of one round. Mean and rates, of this amount a step,
// come from the geometric mean of its segments, and shares and host time from their totals.
// Percentiles are by nearest rank over the steps of both. Nothing where the device does not know.
std::optional<double> round_value(const Round&, int variant, double amount, Metric);

// Lists the times of all scored steps of the variant, in the order in which they ran; it is empty
// where the device does not time single steps.
std::vector<double> step_seconds_in(const Round&, int variant);

// The value of a metric, for one variant of one traced round. Nothing where the trace does not
// tell.
std::optional<double> traced_value(const TracedRound&, std::size_t variant, Metric);
// The same, the time of one kernel and the class included.
std::optional<double> traced_value(const TracedRound&, std::size_t variant, const MetricOf&);

// Whether the count is of what ranks do together, and the subject is of one: then it is 0, and
// counts and traces leave it out.
bool counts_no_ranks(const Subject&, Metric);

// The rank whose value that is, of several. Nothing where none of them is worse than the others.
std::optional<int> rank_behind(const Traced&, std::size_t variant, const MetricOf&);

// In base units. Nothing when a metric of the side is unknown.
std::optional<double> side_value(const Side&, const Sources&);

// log(left / right) in the round. A side of nothing counts as very little, so that the contrast
// stays a number: a share as a millionth, of a traced time as a nanosecond, which is as fine as
// traces are, otherwise as a trillionth.
std::optional<double> contrast_of(const Expectation&, const Sources&);
// The value that nothing counts for there, in base units.
double nearly_nothing(const Expectation&);

// The rounds whose contrasts decide an assertion of timed or traced evidence, as sources of values:
// the timed ones or the traced ones. The arguments must outlive them.
std::vector<Sources> rounds_that_decide(const Expectation&, std::span<const Subject>,
                                        const Measurement&);

// The metrics of a side, in order.
std::vector<MetricOf> metrics_in(const Side&);

// The first metric of the assertion that is not known there, if there is one.
std::optional<MetricOf> unknown_metric(const Expectation&, const Sources&);

// The product of the numbers of a side that is one product of numbers and exactly one metric, as in
// "1.05 * baseline.samples_per_s". Nothing for any other side.
std::optional<double> factor_of_single_metric(const Side&);

// The limit of an assertion about two metrics: the factor between them that it allows, 0.98 for
// "a.x
// >= 0.98 * b.x".
double limit_of(const Expectation&);

}  // namespace stepgate
