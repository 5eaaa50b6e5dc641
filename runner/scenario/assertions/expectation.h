// SPDX-License-Identifier: MIT
// An assertion of [expect] or [regime], parsed: two sides and a relation. The values of metrics are
// not known here.
//
// expectation := side op side [ "within" percent ]     op := < <= == >= > ~=
// side        := product { " + " product }
// product     := factor { " * " factor }
// factor      := number [unit] | ["stored."] variant "." metric | batch_bytes | param_bytes
// metric      := name | kernel_us "(" kernel ")"
// A whole assertion may also be: variant ".bound ==" data | copy | compute | host, in quotes or
// not. unit        := % ns us ms s B KiB MiB GiB GB/s, optionally /step
//
// "within" belongs to ~= and only to it. Where there is one subject without a name, factors are
// metrics alone.
#pragma once

#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/text/diagnostic.h"
#include "scenario/assertions/metric.h"

namespace stepgate {

enum class Relation { less, at_most, equal, at_least, greater, about };

// A metric of a variant: "fix.samples_per_s". If `stored`, its value comes from the baseline file
// instead of this run.
struct MetricOf {
  std::string variant;
  Metric metric;
  bool stored = false;
  std::string kernel = {};  // with kernel_us: the name in the catalogue
  bool operator==(const MetricOf&) const = default;
};

// Sizes that an assertion takes from the plan of the scenario's first variant.
enum class PlanSize { batch_bytes, param_bytes };

// A factor of a product. A double is in the base unit of its kind: seconds, bytes, or a plain ratio
// (5 % is 0.05).
using Factor = std::variant<double, MetricOf, PlanSize, BoundClass>;
using Product = std::vector<Factor>;  // factors, at least one
using Side = std::vector<Product>;    // a sum of at least one

struct Expectation {
  std::string name;  // the key of the assertion
  std::string text;  // as written
  Place place;       // of the assertion
  Side left;
  Relation relation = Relation::at_least;
  Side right;
  std::optional<double> within;  // only with `about`: 0.03 for "within 3%"
};

// The metric as an assertion writes it behind the variant: "samples_per_s", "kernel_us(matmul)".
std::string metric_text(const MetricOf&);

// The metrics of both sides, in order.
std::vector<MetricOf> metrics_in(const Expectation&);

// Whether the assertion names that variant, or a plan size.
bool names_variant(const Expectation&, const std::string& variant);
bool names_a_plan_size(const Expectation&);

// Whether the assertion compares a variant's bound with a class: `fix.bound == copy`.
bool names_a_bound(const Expectation&);

// The metric of a side that multiplies one metric by numbers; nullptr for any other side.
const MetricOf* only_metric(const Side&);

// The evidence that decides the assertion: that of its least exact metric.
Evidence evidence_of(const Expectation&);

// Whether the assertion names both timed and traced metrics; no process measures both.
bool mixes_timed_and_traced(const Expectation&);

// Whether the assertion names a value of this run, or one of a baseline.
bool names_this_run(const Expectation&);
bool names_stored(const Expectation&);

// Whether the assertion compares "a * x.metric" with "b * y.metric" for two variants of this run.
// Swapping the labels x and y mirrors such an assertion, and a round draws the order of the
// variants at random. Only such assertions have an error rate, and those decided by a few steps
// have none.
bool compares_two_variants(const Expectation&);
// Whether compares_two_variants holds for timed or traced evidence, as for a line of a suite.
bool has_error_rate(const Expectation&);
// Whether it compares two variants by p95 or p99; that is decided by counting the steps beyond the
// percentile.
bool compares_high_percentiles(const Expectation&);
// Whether it compares times with stored ones; that is decided by the differences between runs.
bool compares_stored_times(const Expectation&);

// Whether every step satisfies the assertion, or no step does, given the ranges of its metrics: a
// share is in [0, 1], any other metric at least 0. nullopt where steps decide it, and for `bound`.
std::optional<bool> decided_by_ranges(const Expectation&);

// Whether, among two steps that satisfy the assertion, it leaves more room to the worse one. This
// is so if every metric of this run is on the side where being worse helps. Metrics that only
// describe a step count as neither.
bool is_easier_for_a_worse_step(const Expectation&);

// Whether it compares "a * x.metric" with "b * stored.x.metric", in either order. Only for these is
// the variation of stored times between runs known.
bool compares_with_itself(const Expectation&);

}  // namespace stepgate
