// SPDX-License-Identifier: MIT
// The bound of a step, by stated rules on the shares of its traced time, and the mechanism of a
// whole scenario. separate.h says what separates two variants.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "judge/mechanism/separate.h"
#include "judge/verdict/mechanism.h"
#include "judge/verdict/sides.h"
#include "judge/verdict/verdict.h"

namespace stepgate {

// The rules, in this order:
// 1. A step is bound by what keeps kernels from running when that takes share_that_binds of it:
//    copies alone, idle time after waits, for data or for the host; the largest of them.
// 2. Otherwise it is bound by its work: by what the kernels wait for while they run, arithmetic,
//    device memory or one load after the other, or by the pauses between them; the largest of them.
// 3. Where the second largest is this close to the largest, in shares of the step, no single one
//    bounds it.
constexpr double clear_lead = 0.05;

// The part that bounds the step; nothing where no single one does or nothing was traced.
std::optional<TimePart> bound_of(const TimeBreakdown&);

// The class and the numbers behind it: "sync-bound: waits for the device 1x a step, after which it
// is idle 23 % of the time". `values` may lack any metric, which is then not mentioned.
std::string diagnosis_of(const TimeBreakdown&, const std::map<Metric, double>& values);

// Which variants' traced steps are shorter than their timed ones by more than a fiftieth, which no
// tracing can do: so they are not the same steps.
std::vector<std::string> shorter_trace_notes(std::span<const Subject> variants, const Mechanism&);

// The mechanism of the scenario's variants, which come first in every traced round. Their summaries
// tell what tracing costs. There is one separation for each pair to explain, in their order.
Mechanism mechanism_of(std::span<const Subject> variants, const Traced&,
                       std::span<const VariantSummary>, std::span<const PairToExplain>);

}  // namespace stepgate
