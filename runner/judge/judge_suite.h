// SPDX-License-Identifier: MIT
// Judges the lines of a suite together: which lines fail when all of them share one error rate, and
// whether the suite as a whole is slower although no single line is. A line is a comparison of two
// variants.
//
// The method is closed testing (Marcus, Peritz and Gabriel 1976) of the e-values against the lines:
// a line fails when every set of lines that contains it is rejected. A set is tested by the mean of
// its e-values, which is an e-value under any dependence (Vovk and Wang, E-values: calibration,
// combination and applications, 2021). The set of all lines has a second test. Scenarios are
// randomised independently, so the product over them of (1 + mean of their e-values) / 2 is an
// e-value too, and many small slowdowns multiply in it. This set is tested by nine tenths of the
// mean plus one tenth of the product. So the probability that any true line fails, or the suite
// although all lines are true, is at most alpha.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "judge/verdict/verdict.h"

namespace stepgate {

// The e-value at which a line fails whatever the other lines show: the number of lines times 1 /
// alpha, and a ninth more where there are several lines.
double evidence_that_refutes_a_line(std::int64_t lines, double alpha);

// Returns for each e-value whether the closed test rejects its line: whether its excess over the
// threshold covers the sum of what all lines below the threshold lack, each times its weight. The
// weights must not depend on the evidence; without weights, all lines are equal.
std::vector<bool> failed_together(std::span<const double> evidence, double alpha,
                                  std::span<const double> weights = {});

struct SuiteVerdict {
  std::int64_t lines = 0;  // lines with evidence
  double mean_evidence = 1;
  double product_evidence = 1;  // product over scenarios of (1 + mean of their lines) / 2
  double evidence = 1;          // of the suite as a whole
  double alpha = 0.01;
  bool failed = false;  // whether the suite as a whole fails
  // "scenario.line" of each line that was undecided alone and fails in the suite.
  std::vector<std::string> failed_among_others;
};

// Judges the comparisons in [expect] of scenarios that are not broken, skipped or disturbed. A
// suite of fewer than two comparisons never fails as a whole.
SuiteVerdict judge_suite(std::span<const Verdict>, double alpha);

}  // namespace stepgate
