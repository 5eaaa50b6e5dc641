// SPDX-License-Identifier: MIT
// For tests only: makes reports of verdicts.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "report/report.h"

namespace stepgate {

inline ReportedScenario reported(Verdict verdict, UndecidedPolicy policy = UndecidedPolicy::skip) {
  return reported_scenario(std::move(verdict), nullptr, policy);
}

// Returns a run that has decided these verdicts and continues.
inline RunSoFar run_of(const std::vector<Verdict>& verdicts,
                       UndecidedPolicy policy = UndecidedPolicy::skip) {
  RunSoFar run{.run = {.stepgate = "0.1.0",
                       .build = "00ff",
                       .commit = "0123abc",
                       .date = "2026-11-22T10:00:00Z",
                       .host = "runner-7"},
               .undecided = policy};
  for (const Verdict& verdict : verdicts) run.decided.push_back(reported(verdict, policy));
  return run;
}

// Returns a completed run.
inline RunSoFar ended_run(const std::vector<Verdict>& verdicts,
                          UndecidedPolicy policy = UndecidedPolicy::skip) {
  RunSoFar run = run_of(verdicts, policy);
  run.suite = judge_suite(verdicts, 0.01);
  run.ended = true;
  return run;
}

}  // namespace stepgate
