// SPDX-License-Identifier: MIT
// The mechanism of a whole scenario: the bound of each step by stated rules on the shares of its
// traced time, what separates two variants, and notes for a reader of traced numbers.
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

// Two variants by their places, and what the clock says of them.
struct PairToExplain {
  std::size_t first = 0;
  std::size_t other = 1;
  // Step time of the first over that of the other, where timed rounds tell them apart.
  std::optional<double> timed_ratio = {};
};

// Their step times in timed rounds: nothing where their ratio differs from 1 by less than three
// standard errors, or where fewer than four rounds tell.
std::optional<double> timed_ratio(const Measurement&, std::size_t first, std::size_t other);

// A count differs when it does so in every traced round; a part of the time when all rounds of one
// variant lie beyond all rounds of the other by at least a hundredth of a step. Where no part does
// it says whether the clock tells them apart all the same, and what is rarer than the traced steps.
Separation separation_of(std::span<const Subject> variants, const PairToExplain&, const Traced&);

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

// Names the variants whose traced steps are shorter than their timed ones by more than 2 %. Tracing
// cannot make a step faster, so these are not the same steps.
std::vector<std::string> shorter_trace_notes(std::span<const Subject> variants, const Mechanism&);

// The mechanism of the scenario's variants, which come first in every traced round. Their summaries
// tell what tracing costs. There is one separation for each pair to explain, in their order.
Mechanism mechanism_of(std::span<const Subject> variants, const Traced&,
                       std::span<const VariantSummary>, std::span<const PairToExplain>);

// Whether the library of collectives counts them too, in so many words, and how it carries them
// out; nothing where no variant has any.
std::vector<std::string> library_record_notes(const Traced&);

// Events of the traced steps that do not belong into a steady step, with what to do about them.
std::vector<std::string> unsteady_notes(std::span<const Subject>, const Traced&);

// One sentence for all variants that got the same kernels for the same reasons; none for those that
// had no choice.
//   "in 'baseline' and 'fix', attention is cuDNN 9.14.0's; attention_gradient is stepgate's own:
//   model.attention_workspace is 0 B"
std::vector<std::string> library_notes(const Measurement&);

}  // namespace stepgate
