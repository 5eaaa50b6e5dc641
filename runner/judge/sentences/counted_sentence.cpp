// SPDX-License-Identifier: MIT
#include "judge/sentences/counted_sentence.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "judge/judge.h"
#include "judge/sentences/reasons.h"

namespace stepgate {
namespace {

// Counts over steps that are no whole number, 1/3 say, come out of divisions.
bool is_same_count(double one, double other) {
  return std::abs(one - other) <= 1e-9 * std::max(std::abs(one), std::abs(other));
}

// Why the traced rounds do not give the sentence's counts, in words; nothing when they do.
std::optional<std::string> reason_against_counts(const Expectation& sentence,
                                                 std::span<const Subject> subjects,
                                                 const Traced& traced) {
  for (const MetricOf& metric : metrics_in(sentence)) {
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

}  // namespace

void decide_counted(const Expectation& sentence, std::span<const Subject> subjects,
                    const Measurement& measurement,
                    const std::function<std::optional<double>(const MetricOf&)>& stored,
                    SentenceVerdict& verdict) {
  Sources sources{.subjects = subjects, .stored = stored};
  if (evidence_of(sentence) == Evidence::exact && !measurement.planned_only) {
    if (const auto missing = reason_without_trace(measurement)) {
      const auto left = side_value(sentence.left, sources);
      const auto right = side_value(sentence.right, sources);
      verdict.reason = *missing;
      if (left && right) verdict.reason += planned_instead(sentence, *left, *right, verdict.unit);
      return;
    }
    if (auto against = reason_against_counts(sentence, subjects, *measurement.traced)) {
      verdict.reason = std::move(*against);
      return;
    }
    sources.traced = &measurement.traced->rounds.front();
  }
  verdict.left = side_value(sentence.left, sources);
  verdict.right = side_value(sentence.right, sources);
  if (!verdict.left || !verdict.right) {
    const auto unknown = unknown_metric(sentence, sources);
    verdict.reason = unknown ? absent_reason(*unknown) : std::string("a value is not known");
    return;
  }
  const bool holds = relation_holds(sentence, *verdict.left, *verdict.right);
  verdict.outcome = holds ? Outcome::holds : Outcome::refuted;
  verdict.reason = counted_reason(sentence, verdict);
}

}  // namespace stepgate
