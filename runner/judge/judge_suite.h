// SPDX-License-Identifier: MIT
// Is the suite as a whole slower, although no line of it is? Many small slowdowns that no line can
// prove alone add up.
#pragma once

#include <cstdint>
#include <span>

#include "judge/verdict.h"

namespace stepgate {

struct SuiteVerdict {
  std::int64_t lines = 0;  // timed sentences with evidence
  // The mean over the lines of the evidence against each when its run stopped. While all sentences
  // are true each has expectation at most 1 and so has their mean, whatever depends on what: it
  // reaches 1 / level with probability at most level (Markov). Running maxima would not do.
  double mean_evidence = 1;
  double level = 0.005;
  bool refuted = false;
};

// Of the sentences of [expect] that were decided by time; of fewer than two lines never refuted.
SuiteVerdict judge_suite(std::span<const Verdict>, double suite_alpha);

}  // namespace stepgate
