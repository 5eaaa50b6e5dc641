// SPDX-License-Identifier: MIT
// What a run tells other programs of every sentence: whether it passed, failed, could not be tried
// or was left open, and why. JUnit, summaries and annotations are three ways to write this down.
// A sentence that the run did not get to has not passed.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "judge/judge_suite.h"
#include "judge/verdict.h"
#include "report/exit_code.h"
#include "report/run_info.h"
#include "scenario/scenario.h"
#include "support/diagnostic.h"

namespace stepgate {

// What ended a run, or why its answer is none.
struct RunFailure {
  std::string type;  // "request", "device", "interrupted", "not gated"
  Place place;       // of what is wrong in a file
  std::string message;
};

// A run as far as it has come.
struct ReportedRun {
  RunInfo run;
  UndecidedPolicy undecided = UndecidedPolicy::skip;
  std::vector<const Scenario*> scenarios;  // all that are to be decided, in order
  std::span<const Verdict> verdicts;       // of the first of them
  const SuiteVerdict* suite = nullptr;     // null before the end
  std::vector<RunFailure> failures;
};

// failed: refuted. error: broken, not gated, not reached, or the device failed.
enum class CaseEnd { passed, failed, error, skipped };

// The type of a case that the run did not get to.
constexpr std::string_view not_run = "not run";

struct ReportedCase {
  std::string name;   // "scenario.sentence", of no other case of the run
  std::string title;  // what people call it: the same without what tells namesakes apart
  Place place;
  CaseEnd end = CaseEnd::error;
  std::string type;     // in a word: "holds", "refuted", "undecided", "broken", "device", ...
  std::string message;  // the sentence and why
};

struct ReportedScenario {
  std::string name;
  const Verdict* verdict = nullptr;  // null where it has none
  std::vector<ReportedCase> cases;
};

// All that a report of a run or a gate needs to know.
struct ReportedCases {
  RunInfo run;
  bool simulated = false;  // something of it was computed instead of measured
  bool ended_early = false;
  std::vector<ReportedScenario> scenarios;
};

// A scenario each, with a case for every sentence of [expect]. Before them one named "stepgate",
// with a case for every failure and one for a suite that is refuted though no sentence is, where
// there is any.
ReportedCases reported_cases(const ReportedRun&);

// Gives every case a name that no other has.
void name_apart(std::vector<ReportedScenario>&);

CaseEnd end_of_undecided(UndecidedPolicy);

// How many cases end so.
std::size_t count_of(std::span<const ReportedScenario>, CaseEnd);

}  // namespace stepgate
