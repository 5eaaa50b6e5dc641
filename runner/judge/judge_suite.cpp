// SPDX-License-Identifier: MIT
#include "judge/judge_suite.h"

#include <algorithm>
#include <numeric>

namespace stepgate {
namespace {

// Weight of the mean in the test of all lines; the product has the rest.
constexpr double share_of_the_mean = 0.9;

double weight_of_the_mean(std::size_t lines) {
  return lines > 1 ? share_of_the_mean : 1;
}

struct Line {
  const Verdict* scenario;
  const AssertionVerdict* assertion;
};

bool has_evidence(const AssertionVerdict& assertion) {
  return assertion.timed && assertion.outcome != Outcome::skipped;
}

// A line in doubt, or one that total time supports, adds no evidence.
double evidence_against(const AssertionVerdict& assertion) {
  return assertion.in_doubt || assertion.timed->held_back_by_total
             ? 0
             : assertion.timed->evidence_against;
}

}  // namespace

double evidence_that_refutes_a_line(std::int64_t lines, double alpha) {
  const auto count = static_cast<std::size_t>(std::max<std::int64_t>(lines, 1));
  return static_cast<double>(count) / (alpha * weight_of_the_mean(count));
}

std::vector<bool> failed_together(std::span<const double> evidence, double alpha,
                                  std::span<const double> weights) {
  const double threshold = 1 / (alpha * weight_of_the_mean(evidence.size()));
  const auto weight = [&](std::size_t line) { return weights.empty() ? 1.0 : weights[line]; };
  double lacking = 0;
  for (std::size_t line = 0; line < evidence.size(); ++line)
    lacking += weight(line) * std::max(threshold - evidence[line], 0.0);
  std::vector<bool> failed;
  for (std::size_t line = 0; line < evidence.size(); ++line)
    failed.push_back(weight(line) * (evidence[line] - threshold) >= lacking);
  return failed;
}

SuiteVerdict judge_suite(std::span<const Verdict> verdicts, double alpha) {
  SuiteVerdict suite;
  suite.alpha = alpha;
  std::vector<Line> lines;
  std::vector<double> evidence;
  for (const Verdict& verdict : verdicts) {
    if (verdict.broken) continue;
    double sum = 0;
    std::int64_t own = 0;
    for (const AssertionVerdict& assertion : verdict.assertions) {
      if (!has_evidence(assertion)) continue;
      lines.push_back({&verdict, &assertion});
      evidence.push_back(evidence_against(assertion));
      sum += evidence.back();
      ++own;
    }
    if (own > 0) suite.product_evidence *= 0.5 * (1 + sum / static_cast<double>(own));
  }
  suite.lines = std::ssize(lines);
  if (lines.empty()) return suite;
  suite.mean_evidence =
      std::accumulate(evidence.begin(), evidence.end(), 0.0) / static_cast<double>(evidence.size());
  const double weight = weight_of_the_mean(lines.size());
  suite.evidence = weight * suite.mean_evidence + (1 - weight) * suite.product_evidence;
  suite.failed = lines.size() > 1 && suite.evidence >= 1 / alpha;
  const std::vector<bool> failed = failed_together(evidence, alpha);
  for (std::size_t index = 0; index < lines.size(); ++index) {
    if (failed[index] && lines[index].assertion->outcome == Outcome::undecided) {
      suite.failed_among_others.push_back(lines[index].scenario->scenario + "." +
                                          lines[index].assertion->name);
    }
  }
  return suite;
}

}  // namespace stepgate
