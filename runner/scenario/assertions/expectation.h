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
// "within" belongs to ~= and only to it.
#pragma once

#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/text/diagnostic.h"
#include "scenario/assertions/metric.h"

namespace stepgate {

enum class Relation { less, at_most, equal, at_least, greater, about };

// "fix.samples_per_s"; `stored` takes the value from the baseline file instead of this run.
struct MetricOf {
  std::string variant;
  Metric metric;
  bool stored = false;
  std::string kernel = {};  // with kernel_us: of the catalogue
  bool operator==(const MetricOf&) const = default;
};

// Sizes that the plan of the scenario's first variant knows.
enum class PlanSize { batch_bytes, param_bytes };

// A number in the base unit of its kind: seconds, bytes, or a plain ratio (5 % is 0.05).
using Factor = std::variant<double, MetricOf, PlanSize, BoundClass>;
using Product = std::vector<Factor>;  // at least one
using Side = std::vector<Product>;    // a sum; at least one

struct Expectation {
  std::string name;  // the key on the left
  std::string text;  // as written
  Place place;       // of the assertion
  Side left;
  Relation relation = Relation::at_least;
  Side right;
  std::optional<double> within;  // only with `about`: 0.03 for "within 3%"
};

// As written behind the variant: "samples_per_s", "kernel_us(matmul)".
std::string metric_text(const MetricOf&);

// The metrics of both sides, in order.
std::vector<MetricOf> metrics_in(const Expectation&);

// Whether it says anything of that variant; and whether it says anything of the first one's sizes,
// which it does not name.
bool names_variant(const Expectation&, const std::string& variant);
bool names_a_plan_size(const Expectation&);

// Whether it is about the class of a variant.
bool names_a_bound(const Expectation&);

// The metric of a side that is one product of it and numbers; null for any other side.
const MetricOf* only_metric(const Side&);

// The evidence that decides the assertion: the least exact of its metrics.
Evidence evidence_of(const Expectation&);

// Whether it names metrics of timed and of traced evidence, which no process measures both.
bool mixes_timed_and_traced(const Expectation&);

// Whether any of its values is one of this run, and whether any comes from a baseline.
bool names_this_run(const Expectation&);
bool names_stored(const Expectation&);

// Whether it is "a * x.metric" against "b * y.metric", of two variants of this run: swapping their
// labels turns such an assertion round, and that is what a round deals. Only then has it an error
// rate; of what a few steps decide it has none.
bool compares_two_variants(const Expectation&);
// The same of timed or traced evidence: a line of a suite.
bool has_error_rate(const Expectation&);
// Whether it compares two variants by p95 or p99, which is decided by counting the steps beyond it.
bool compares_high_percentiles(const Expectation&);
// Whether it compares times with stored ones: decided by what differs from run to run.
bool compares_stored_times(const Expectation&);

// Whether no step satisfies it, or every step does, by what its metrics can be: a share is from 0
// to 1, anything else at least 0. Nothing where steps differ in it, and where it is about a class.
std::optional<bool> decided_by_ranges(const Expectation&);

// Whether every metric of this run stands on the side where a worse step has it: of two that
// satisfy the assertion the worse one does so more easily. A metric that only describes a step says
// nothing.
bool is_easier_for_a_worse_step(const Expectation&);

// Whether it is "a * x.metric" against "b * stored.x.metric", either way round: how stored times
// differ from run to run is known for nothing else.
bool compares_with_itself(const Expectation&);

}  // namespace stepgate
