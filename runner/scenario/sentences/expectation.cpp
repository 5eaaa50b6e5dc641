// SPDX-License-Identifier: MIT
// What a parsed sentence says about itself.
#include "scenario/sentences/expectation.h"

#include <algorithm>

namespace stepgate {

std::string metric_text(const MetricOf& of) {
  const std::string name(row_of(of.metric).name);
  return of.kernel.empty() ? name : name + '(' + of.kernel + ')';
}

std::vector<MetricOf> metrics_in(const Expectation& expectation) {
  std::vector<MetricOf> metrics;
  for (const Side* side : {&expectation.left, &expectation.right}) {
    for (const Product& product : *side) {
      for (const Factor& factor : product) {
        if (const auto* of = std::get_if<MetricOf>(&factor)) metrics.push_back(*of);
      }
    }
  }
  return metrics;
}

bool names_variant(const Expectation& expectation, const std::string& variant) {
  return std::ranges::any_of(metrics_in(expectation),
                             [&](const MetricOf& of) { return of.variant == variant; });
}

bool names_a_plan_size(const Expectation& expectation) {
  for (const Side* side : {&expectation.left, &expectation.right}) {
    for (const Product& product : *side) {
      for (const Factor& factor : product) {
        if (std::holds_alternative<PlanSize>(factor)) return true;
      }
    }
  }
  return false;
}

bool names_a_bound(const Expectation& expectation) {
  return std::ranges::any_of(metrics_in(expectation),
                             [](const MetricOf& of) { return of.metric == Metric::bound; });
}

const MetricOf* only_metric(const Side& side) {
  const MetricOf* found = nullptr;
  if (side.size() != 1) return nullptr;
  for (const Factor& factor : side.front()) {
    if (std::holds_alternative<double>(factor)) continue;
    const auto* of = std::get_if<MetricOf>(&factor);
    if (of == nullptr || found != nullptr) return nullptr;
    found = of;
  }
  return found;
}

Evidence evidence_of(const Expectation& expectation) {
  Evidence least_exact = Evidence::plan;
  for (const MetricOf& of : metrics_in(expectation)) {
    least_exact = std::max(least_exact, row_of(of.metric).evidence);
  }
  return least_exact;
}

bool mixes_timed_and_traced(const Expectation& expectation) {
  const std::vector<MetricOf> metrics = metrics_in(expectation);
  const auto names = [&](Evidence evidence) {
    return std::any_of(metrics.begin(), metrics.end(),
                       [&](const MetricOf& of) { return row_of(of.metric).evidence == evidence; });
  };
  return names(Evidence::timed) && names(Evidence::traced);
}

bool names_this_run(const Expectation& expectation) {
  const std::vector<MetricOf> metrics = metrics_in(expectation);
  return std::any_of(metrics.begin(), metrics.end(), [](const MetricOf& of) { return !of.stored; });
}

bool names_stored(const Expectation& expectation) {
  const std::vector<MetricOf> metrics = metrics_in(expectation);
  return std::any_of(metrics.begin(), metrics.end(), [](const MetricOf& of) { return of.stored; });
}

bool compares_two_variants(const Expectation& expectation) {
  const MetricOf* left = only_metric(expectation.left);
  const MetricOf* right = only_metric(expectation.right);
  return left && right && left->metric == right->metric && left->kernel == right->kernel &&
         left->variant != right->variant && !left->stored && !right->stored;
}

bool compares_high_percentiles(const Expectation& sentence) {
  return compares_two_variants(sentence) &&
         percentile_of(only_metric(sentence.left)->metric).value_or(0) > 0.5;
}

bool has_error_rate(const Expectation& expectation) {
  return evidence_of(expectation) >= Evidence::timed && compares_two_variants(expectation);
}

bool compares_stored_times(const Expectation& expectation) {
  return names_stored(expectation) && evidence_of(expectation) == Evidence::timed;
}

bool compares_with_itself(const Expectation& expectation) {
  const MetricOf* left = only_metric(expectation.left);
  const MetricOf* right = only_metric(expectation.right);
  return left && right && left->variant == right->variant && left->metric == right->metric &&
         left->stored != right->stored;
}

}  // namespace stepgate
