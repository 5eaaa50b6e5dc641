// SPDX-License-Identifier: MIT
// The lines of a suite together: which fail when each must answer for all, and whether the
// suite as a whole is slower although no line of it is. A line is a comparison of two variants.
//
// Closed testing (Marcus, Peritz and Gabriel 1976) on the e-values against the lines when they were
// decided: a line fails when every set of lines that it is in is. A set is tested by the mean
// of its e-values, which is an e-value whatever depends on what (Vovk and Wang, E-values:
// calibration, combination and applications, 2021). The set of all lines has a second test besides:
// scenarios have coins of their own, so the product over them of (1 + mean of their e-values) / 2
// is an e-value too, and many small slowdowns multiply in it. That set is tested by nine tenths of
// the mean and a tenth of the product. So any true line fails, or the suite although all are
// true, in at most alpha of runs.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "judge/verdict/verdict.h"

namespace stepgate {

// An e-value that refutes a line whatever becomes of the others: as many times 1 / alpha as there
// are lines, and a ninth more where there are several.
double evidence_that_refutes_a_line(std::int64_t lines, double alpha);

// Says for each e-value whether the closed test refutes its line: where it exceeds the threshold by
// as much as all lines below it lack together, each times its weight. The weights must not depend
// on the evidence; without them all are alike.
std::vector<bool> failed_together(std::span<const double> evidence, double alpha,
                                  std::span<const double> weights = {});

struct SuiteVerdict {
  std::int64_t lines = 0;  // with evidence
  double mean_evidence = 1;
  double product_evidence = 1;  // over scenarios of (1 + mean of their lines) / 2
  double evidence = 1;          // of the suite as a whole
  double alpha = 0.01;
  bool failed = false;  // as a whole
  // "scenario.line" of those that were undecided alone and fail among the others.
  std::vector<std::string> failed_among_others;
};

// Judges the comparisons in [expect] of scenarios that are not broken, skipped or disturbed. A
// suite of fewer than two never fails as a whole.
SuiteVerdict judge_suite(std::span<const Verdict>, double alpha);

}  // namespace stepgate
