// SPDX-License-Identifier: MIT
#include "judge/judge_suite.h"

namespace stepgate {

SuiteVerdict judge_suite(std::span<const Verdict> verdicts, double suite_alpha) {
  SuiteVerdict suite{.level = suite_alpha / 2};
  double sum = 0;
  for (const Verdict& verdict : verdicts) {
    if (verdict.broken) continue;
    for (const SentenceVerdict& sentence : verdict.sentences) {
      if (!sentence.timed || sentence.outcome == Outcome::skipped) continue;
      sum += sentence.timed->evidence_against_at_end;
      ++suite.lines;
    }
  }
  if (suite.lines > 0) suite.mean_evidence = sum / static_cast<double>(suite.lines);
  suite.refuted = suite.lines > 1 && suite.mean_evidence >= 1 / suite.level;
  return suite;
}

}  // namespace stepgate
