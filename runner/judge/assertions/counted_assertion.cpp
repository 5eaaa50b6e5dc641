// SPDX-License-Identifier: MIT
#include "judge/assertions/counted_assertion.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "judge/assertions/reasons.h"
#include "judge/judge.h"

namespace stepgate {
namespace {

// Compares with a tolerance, since a count per step may be a rounded fraction such as 1/3.
bool is_same_count(double one, double other) {
  return std::abs(one - other) <= 1e-9 * std::max(std::abs(one), std::abs(other));
}

// Returns why the traced rounds do not give the assertion's counts, in words; nullopt when they do.
std::optional<std::string> reason_against_counts(const Expectation& assertion,
                                                 std::span<const Subject> subjects,
                                                 const Traced& traced) {
  for (const MetricOf& metric : metrics_in(assertion)) {
    if (metric.stored || row_of(metric.metric).evidence != Evidence::exact) continue;
    const std::size_t variant = subject_named(subjects, metric.variant);
    if (counts_no_ranks(subjects[variant], metric.metric)) continue;
    const auto first = traced_value(traced.rounds.front(), variant, metric.metric);
    for (std::size_t round = 0; round < traced.rounds.size(); ++round) {
      const auto value = traced_value(traced.rounds[round], variant, metric.metric);
      if (!first || !value) return absent_reason(metric);
      if (!is_same_count(*first, *value)) {
        return changing_count_reason(metric, *first, *value, round + 1);
      }
    }
  }
  return std::nullopt;
}

// Whether a trace has to agree with the counts of the assertion.
bool needs_trace(const Expectation& assertion, std::span<const Subject> subjects,
                 const Measurement& measurement) {
  return evidence_of(assertion) == Evidence::exact && !measurement.planned_only &&
         !std::ranges::all_of(metrics_in(assertion), [&](const MetricOf& metric) {
           return subjects[subject_named(subjects, metric.variant)].is_counted;
         });
}

}  // namespace

void decide_counted(const Expectation& assertion, std::span<const Subject> subjects,
                    const Measurement& measurement,
                    const std::function<std::optional<double>(const MetricOf&)>& stored,
                    AssertionVerdict& verdict) {
  Sources sources{.subjects = subjects, .stored = stored};
  if (needs_trace(assertion, subjects, measurement)) {
    if (const auto missing = reason_without_trace(measurement)) {
      const auto left = side_value(assertion.left, sources);
      const auto right = side_value(assertion.right, sources);
      verdict.reason = *missing;
      if (left && right) verdict.reason += planned_instead(assertion, *left, *right, verdict.unit);
      return;
    }
    if (auto against = reason_against_counts(assertion, subjects, *measurement.traced)) {
      verdict.reason = std::move(*against);
      return;
    }
    sources.traced = &measurement.traced->rounds.front();
  }
  verdict.left = side_value(assertion.left, sources);
  verdict.right = side_value(assertion.right, sources);
  if (!verdict.left || !verdict.right) {
    const auto unknown = unknown_metric(assertion, sources);
    verdict.reason = unknown ? absent_reason(*unknown) : std::string("a value is not known");
    return;
  }
  const bool holds = relation_holds(assertion, *verdict.left, *verdict.right);
  verdict.outcome = holds ? Outcome::passes : Outcome::fails;
  verdict.reason = counted_reason(assertion, verdict);
}

}  // namespace stepgate
