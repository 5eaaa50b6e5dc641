// SPDX-License-Identifier: MIT
// The mechanism of a scenario: what bounds each step, by fixed rules on the shares of its traced
// time, which differences separate two variants, and notes for readers of the traced numbers.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "judge/verdict/mechanism.h"
#include "judge/verdict/sides.h"
#include "judge/verdict/verdict.h"
#include "measure/rounds/measurement.h"
#include "measure/subject.h"
#include "measure/trace/traced.h"

namespace stepgate {

// Two variants by index, and the ratio of their timed step times.
struct PairToExplain {
  std::size_t first = 0;
  std::size_t other = 1;
  // Step time of the first variant / that of the other, where timed rounds show a difference.
  std::optional<double> timed_ratio = {};
};

// The ratio of their step times in timed rounds; nullopt where it differs from 1 by less than three
// standard errors, or where fewer than four rounds know both times.
std::optional<double> timed_ratio(const Measurement&, std::size_t first, std::size_t other);

// Finds the differences of two variants. A count differs if it does in every traced round. A part
// of the time differs if all rounds of one variant lie beyond all rounds of the other, by at least
// a hundredth of a step. Where no part differs, the result says whether the timed ratio differs,
// and which work is rarer than the traced steps.
Separation separation_of(std::span<const Subject> variants, const PairToExplain&, const Traced&);

// The rules, in this order:
// 1. A step is bound by what keeps kernels from running, if that takes share_that_binds of the
// step:
//    copies alone, or idle time after waits, for data or for the host; the largest of them.
// 2. Otherwise it is bound by what its kernels wait for (arithmetic, device memory or dependent
//    loads), or by the pauses between kernels; the largest of them.
// 3. If the second largest is within this share of the step of the largest, no single part bounds
//    it.
constexpr double clear_lead = 0.05;

// The part that bounds the step; nullopt where no single part does or nothing was traced.
std::optional<TimePart> bound_of(const TimeBreakdown&);

// The class with its numbers: "sync-bound: waits for the device 1x a step, after which it is idle
// 23 % of the time". Metrics that `values` lacks are not mentioned.
std::string diagnosis_of(const TimeBreakdown&, const std::map<Metric, double>& values);

// Names the variants whose traced steps are shorter than their timed ones by more than 2 %. Tracing
// cannot speed a step up, so these are not the same steps.
std::vector<std::string> shorter_trace_notes(std::span<const Subject> variants, const Mechanism&);

// The mechanism of the scenario's variants, which come first in every traced round. Their summaries
// show the overhead of tracing. There is one separation for each pair to explain, in their order.
Mechanism mechanism_of(std::span<const Subject> variants, const Traced&,
                       std::span<const VariantSummary>, std::span<const PairToExplain>);

// Says whether the library of collectives reports the same counts, and which algorithms it used;
// empty where no variant has collectives.
std::vector<std::string> library_record_notes(const Traced&);

// Notes on events in the traced steps that do not belong in a steady step, with advice.
std::vector<std::string> unsteady_notes(std::span<const Subject>, const Traced&);

// Returns one note for all variants that got the same kernels for the same reasons,
// and none for those without a choice.
//  "in 'baseline' and 'fix', attention is cuDNN 9.14.0's; attention_gradient is stepgate's own:
//  model.attention_workspace is 0 B"
std::vector<std::string> library_notes(const Measurement&);

}  // namespace stepgate
