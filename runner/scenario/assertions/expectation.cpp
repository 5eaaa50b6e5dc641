// SPDX-License-Identifier: MIT
// Questions that a parsed assertion answers about itself.
#include "scenario/assertions/expectation.h"

#include <algorithm>
#include <limits>

namespace stepgate {
namespace {

struct Range {
  double low = 0;
  double high = 0;
};

Range range_of(const Factor& factor) {
  if (const auto* number = std::get_if<double>(&factor)) return {*number, *number};
  if (const auto* of = std::get_if<MetricOf>(&factor)) return {0, row_of(of->metric).most};
  return {0, std::numeric_limits<double>::infinity()};
}

Range range_of(const Side& side) {
  Range sum;
  for (const Product& product : side) {
    Range of_product{1, 1};
    for (const Factor& factor : product) {
      const Range of_factor = range_of(factor);
      of_product = {of_product.low * of_factor.low, of_product.high * of_factor.high};
    }
    sum = {sum.low + of_product.low, sum.high + of_product.high};
  }
  return sum;
}

// Whether the relation expects the left side to be the smaller one; nullopt for ~= and the like.
std::optional<bool> wants_less_on_the_left(Relation relation) {
  switch (relation) {
    case Relation::less:
    case Relation::at_most:
      return true;
    case Relation::at_least:
    case Relation::greater:
      return false;
    case Relation::equal:
    case Relation::about:
      return std::nullopt;
  }
  return std::nullopt;
}

}  // namespace

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
         left->variant != right->variant && !left->stored && !right->stored &&
         !is_of_few_steps(left->metric);
}

bool compares_high_percentiles(const Expectation& assertion) {
  return compares_two_variants(assertion) &&
         percentile_of(only_metric(assertion.left)->metric).value_or(0) > 0.5;
}

bool has_error_rate(const Expectation& expectation) {
  return evidence_of(expectation) >= Evidence::timed && compares_two_variants(expectation);
}

bool compares_stored_times(const Expectation& expectation) {
  return names_stored(expectation) && evidence_of(expectation) == Evidence::timed;
}

std::optional<bool> decided_by_ranges(const Expectation& expectation) {
  if (names_a_bound(expectation)) return std::nullopt;
  const Range left = range_of(expectation.left);
  const Range right = range_of(expectation.right);
  const auto wants_less = wants_less_on_the_left(expectation.relation);
  if (!wants_less) {
    const double within = expectation.within.value_or(0);
    const bool apart = left.low > right.high * (1 + within) || left.high < right.low * (1 - within);
    return apart ? std::optional(false) : std::nullopt;
  }
  const Range& small = *wants_less ? left : right;
  const Range& large = *wants_less ? right : left;
  const bool may_be_equal =
      expectation.relation == Relation::at_most || expectation.relation == Relation::at_least;
  if (small.high < large.low || (may_be_equal && small.high == large.low)) return true;
  if (small.low > large.high || (!may_be_equal && small.low == large.high)) return false;
  return std::nullopt;
}

bool is_easier_for_a_worse_step(const Expectation& expectation) {
  const auto wants_less = wants_less_on_the_left(expectation.relation);
  if (!wants_less) return false;
  bool named = false;
  for (const Side* side : {&expectation.left, &expectation.right}) {
    const Better wanted = *wants_less == (side == &expectation.left) ? Better::less : Better::more;
    for (const Product& product : *side) {
      for (const Factor& factor : product) {
        const auto* of = std::get_if<MetricOf>(&factor);
        if (of == nullptr || of->stored || describes_the_step(of->metric)) continue;
        if (row_of(of->metric).better == wanted) return false;
        named = true;
      }
    }
  }
  return named;
}

bool compares_with_itself(const Expectation& expectation) {
  const MetricOf* left = only_metric(expectation.left);
  const MetricOf* right = only_metric(expectation.right);
  return left && right && left->variant == right->variant && left->metric == right->metric &&
         left->stored != right->stored;
}

}  // namespace stepgate
