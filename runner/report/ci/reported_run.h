// SPDX-License-Identifier: MIT
// Describes every assertion of a run for other programs: whether it passed, failed, could not be
// tried or was left open, and why. JUnit, summaries and annotations are three ways to write this
// down. An assertion that the run did not get to has not passed.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/text/diagnostic.h"
#include "judge/judge_suite.h"
#include "judge/verdict/verdict.h"
#include "report/exit_code.h"
#include "report/run_info.h"
#include "scenario/scenario.h"

namespace stepgate {

// The cause that ended a run, or that leaves it without an answer.
struct RunFailure {
  std::string type;  // "request", "device", "interrupted", "not gated"
  Place place;       // of what is wrong in a file
  std::string message;
};

struct ReportedGate;

// A picture of a scenario, as draw_timeline and draw_memory write it.
struct Picture {
  std::string title;  // "Timelines"
  std::string words;  // what it shows, for who cannot see it
  std::string svg;
};

// A run as far as it has come.
struct ReportedRun {
  RunInfo run;
  UndecidedPolicy undecided = UndecidedPolicy::skip;
  std::vector<const Scenario*> scenarios;  // all that are to be decided, in order
  std::span<const Verdict> verdicts;       // of the first of them
  const SuiteVerdict* suite = nullptr;     // null before the end
  std::vector<RunFailure> failures;
  bool ended = false;                              // however: there is an exit code
  std::span<const std::vector<Picture>> pictures;  // of the scenarios, in order; may be fewer
};

// failed: failed. error: broken, not gated, not reached, or the device failed.
enum class CaseEnd { passed, failed, error, skipped };

// The type of a case that the run did not get to.
constexpr std::string_view not_run = "not run";

struct ReportedCase {
  std::string name;   // "scenario.assertion", of no other case of the run
  std::string title;  // what people call it: the same without what tells namesakes apart
  Place place;
  CaseEnd end = CaseEnd::error;
  std::string type;     // in a word: "passes", "fails", "undecided", "broken", "device", ...
  std::string message;  // the assertion and why
  const AssertionVerdict* assertion = nullptr;  // null where nothing was decided
};

struct ReportedScenario {
  std::string name;
  const Verdict* verdict = nullptr;  // null where it has none
  std::vector<ReportedCase> cases;
  const Scenario* scenario = nullptr;  // null where it is none
  std::span<const Picture> pictures;
};

// All that a report of a run or a gate needs to know.
struct ReportedCases {
  std::string verb = "run";  // or "gate"
  RunInfo run;
  bool simulated = false;  // something of it was computed instead of measured
  bool ended_early = false;
  std::vector<ReportedScenario> scenarios;
  // Exit code of the process; absent before the end, and where a signal ended it.
  std::optional<ExitCode> code;
  std::shared_ptr<const ReportedGate> gate;  // null for a run, and for a gate before its end
};

// A scenario each, with a case for every assertion of [expect]. Before them one named "stepgate",
// with a case for every failure and one for a suite that fails though no assertion is, where
// there is any.
ReportedCases reported_cases(const ReportedRun&);

// Gives every case a name that no other has.
void name_apart(std::vector<ReportedScenario>&);

CaseEnd end_of_undecided(UndecidedPolicy);

// How many cases end so.
std::size_t count_of(std::span<const ReportedScenario>, CaseEnd);

}  // namespace stepgate
