// SPDX-License-Identifier: MIT
// The content of every report of a run or a gate. report_of builds it from verdicts, gate_report
// from findings. The six writers of writers.h only format it. Texts are unescaped; each writer
// escapes them for its format.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/text/diagnostic.h"
#include "base/text/number_words.h"
#include "compare/gate/gate_part.h"
#include "compare/gate/judge_gate.h"
#include "judge/judge_suite.h"
#include "judge/verdict/verdict.h"
#include "judge/verdict/words.h"
#include "report/exit_code.h"
#include "report/run_info.h"
#include "scenario/scenario.h"

namespace stepgate {

// "scenarios/a.toml:12"; empty if not known.
std::string place_in_words(const Place&);

// A row of titles, then one row for each thing, all with equally many cells. Empty: no table.
using TextTable = std::vector<std::vector<std::string>>;

// From where to where numbers go; infinite ends are open.
struct Span {
  double low = 0;
  double high = 0;
};

// A number against the limit that it is held to, in the terms that the assertion's author wrote: in
// base units, or a factor.
struct ReportedNumber {
  double value = 0;
  std::optional<RatioInterval> interval = {};
  double limit = 0;
  Span allowed = {};                // the side of the limit on which the number should lie
  std::string value_words = {};     // "1.24x"; empty: a table says it
  std::string interval_words = {};  // " [1.2x, 1.3x]"
  std::string limit_words = {};     // "at least 1.05x"
};

// `relation` of the expectation says which side is allowed, `within` how far a value may be off
// that should be about the limit. Nothing for assertions without such a number.
std::optional<ReportedNumber> number_of(const AssertionVerdict&, const Expectation*);

struct ReportedAssertion {
  std::string name;
  std::string text;  // as the file has it
  Place place;
  Outcome outcome = Outcome::undecided;  // by itself
  std::string reason;
  std::string clocks;  // the difference taken apart; empty where that is not known
  std::optional<ReportedNumber> number;
};

// failed: an assertion fails. error: broken, not gated, not reached, or the device failed.
enum class CaseEnd { passed, failed, error, skipped };
CaseEnd end_of_undecided(UndecidedPolicy);

// The type of a case that the run did not get to.
inline constexpr std::string_view not_run = "not run";

// An assertion, or anything else that a CI system counts: it ends in one way.
struct ReportedCase {
  std::string name = {};   // "scenario.assertion", of no other case of the run
  std::string title = {};  // what people call it: the same without what tells namesakes apart
  Place place = {};
  CaseEnd end = CaseEnd::error;
  std::string type = {};  // in a word: "passes", "fails", "undecided", "broken", "device", ...
  std::string why = {};
  std::string message = {};    // the assertion and why
  std::string by_itself = {};  // the assertion's own outcome and reason; empty where `why` has them
  const ReportedAssertion* assertion = nullptr;  // of the verdict's [expect]; null for all else
};

struct CaseCounts {
  std::array<std::size_t, 4> by_end{};

  std::size_t operator[](CaseEnd end) const { return by_end[static_cast<std::size_t>(end)]; }
  std::size_t all() const;
  // Failed, error, skipped, passed: the first that any case has; none without a case.
  std::optional<CaseEnd> gravest() const;
};

// A knob table of a step, or what else there is to say of it.
struct ReportedThing {
  struct Alike {
    std::string variants;  // "all", "baseline, item", of many the first
    std::string words;     // "step"; "nothing else" where there is nothing to say
  };
  std::string_view thing;  // "sync"
  std::vector<Alike> groups;

  bool differs() const { return groups.size() > 1; }
};
std::vector<ReportedThing> reported_steps(const std::vector<DescribedStep>&);

// The mechanism, which traces tell. Memory by purpose is there only where it differs between the
// variants or from the plan.
struct ReportedMechanism {
  struct Diagnosed {
    std::string variant;
    std::string diagnosis;
  };
  std::string unavailable;  // why nothing of what follows is there; empty where it is
  std::vector<Diagnosed> variants;
  std::vector<std::string> separations;
  TextTable time;     // where the time of a traced step goes, a row a variant
  TextTable slowest;  // at most eight rows: how often, how long, what share of a traced step
  std::vector<std::string> ranks;  // which rank the numbers of a variant come from
  TextTable memory;
  std::string cost;  // "7 traced rounds of 2 steps, 1.2 s; ..."
};
ReportedMechanism reported_mechanism(const Mechanism&);

// A verdict in words.
struct ReportedVerdict {
  Verdict verdict;         // all its numbers, which programs read
  bool simulated = false;  // nothing of it was measured
  std::string device;      // in words; empty where none takes part
  std::string where;       // "on NVIDIA H200", or that its plans decide
  std::string ended;       // in a word or two: its outcome, "not run", "device failed", "broken"
  std::string fault;       // "the device failed", "not run", "broken"; empty: its assertions decide
  std::string why;         // of the fault
  std::string calibrated;  // "batch.size = 64, where ..."; empty where nothing was
  std::vector<ReportedThing> steps;
  std::vector<ReportedAssertion> regime;
  std::vector<ReportedAssertion> assertions;
  TextTable variants;  // their numbers; columns that nothing is known of are left out
  std::optional<ReportedMechanism> mechanism;
  std::string cost;   // "after 6 rounds of 2 loads, 0.93 GPU seconds"; empty: nothing was measured
  std::string rates;  // how far it can be trusted: "; of this process: at most 1 % ..."
};

// The scenario may be null: then it is not known on which side of a limit a number should lie.
ReportedVerdict reported_verdict(Verdict, const Scenario*);

// A picture of a scenario, as draw_timeline and draw_memory write it.
struct Picture {
  std::string title;  // "Timelines"
  std::string words;  // what it shows, as alternative text
  std::string svg;
};

struct ReportedScenario {
  std::string name = {};
  std::vector<ReportedCase> cases = {};
  CaseCounts counts = {};
  // In a word or two how it ended: "fails", "broken", "device failed", "not run". An assertion
  // that the suite refutes counts.
  std::string ended = {};
  CaseEnd end = CaseEnd::error;                         // the gravest of it
  std::shared_ptr<const ReportedVerdict> decided = {};  // null where there is no verdict
  std::span<const Picture> pictures = {};
};

// A case for every assertion of [expect], and for every one of [regime] that fails. The
// scenario may be null.
ReportedScenario reported_scenario(Verdict, const Scenario*, UndecidedPolicy);

struct GateSubject {
  std::string base;  // as given
  std::string head;
  std::optional<Introduction> both;  // absent where one of them did not even say hello
  double margin = 0;
  std::vector<GatePart> only = {};          // compared; empty: all
  std::int64_t wider = 0;                   // workloads that have a larger one of their own
  std::chrono::nanoseconds most_timing{0};  // of a comparison; 0 where there is none
};

// The program as given, with what it says of itself where it said anything (may be null).
std::string program_in_words(const std::string& given, const Hello*);
// "2 %, more for 9 workloads".
std::string margin_in_words(const GateSubject&);

// The things that a gate looked at.
struct GateLooks {
  std::vector<std::string> counted;  // workloads
  std::optional<ComparisonVerdict> comparison;
  std::vector<HeadAssertion> assertions;
};

// A finding that several workloads have in common, which is said once.
struct ReportedFinding {
  Finding finding;                     // the first of them
  std::vector<std::string> workloads;  // empty names: of the gate as a whole
  std::string place;                   // in words, where a line is known
  std::string accepted;  // "accepted up to 5 % by a until 2026-12-31: why"; may be empty
};

// All of a gate that has come to its end.
struct ReportedGate {
  GateSubject subject;
  GateLooks looks;
  GateVerdict verdict;  // every finding; `findings` has them for people
  std::string base;     // in words, as `head`
  std::string head;
  std::string device;  // empty where neither said it
  std::string margin;
  std::vector<ReportedFinding> findings;
  std::string answer;  // "BLOCKED: 3 x count", "PASSED: ..."
  std::string policy;  // why an answer that is open ends as if it were none; may be empty
};

// How many scenarios ended so, and the lines or scenarios that decide it.
struct TallyEntry {
  std::string_view how;  // "passes", or "pass" of several; "device failed", "not run"
  std::size_t count = 0;
  std::vector<std::string> names = {};
};

struct ReportedSuite {
  SuiteVerdict verdict;
  std::vector<std::string> failed;  // what is: a line alone among the others, the suite
};

struct Report {
  std::string verb = "run";  // or "gate"
  RunInfo run = {};
  bool simulated = false;  // something of it was computed instead of measured
  bool ended_early = false;
  // Before all others one named "stepgate" of what belongs to no scenario, where there is any.
  std::vector<ReportedScenario> scenarios = {};
  CaseCounts counts = {};
  std::vector<TallyEntry> tally = {};
  std::optional<ReportedSuite> suite = {};  // absent before the end
  bool failed_as_suite = false;             // though no scenario is by itself
  // Exit code of the process; absent before the end, and where a signal ended it.
  std::optional<ExitCode> code = {};
  std::shared_ptr<const ReportedGate> gate = {};  // null for a run, and for a gate before its end
};

// The cause that ended a run, or that leaves it without an answer.
struct RunFailure {
  std::string type;  // "request", "device", "interrupted", "not gated"
  Place place;       // of what is wrong in a file
  std::string message;
};

// A run as far as it has come.
struct RunSoFar {
  RunInfo run = {};
  UndecidedPolicy undecided = UndecidedPolicy::skip;
  std::vector<const Scenario*> scenarios = {};  // all that are to be decided, in order
  std::vector<ReportedScenario> decided = {};   // the first of them
  std::optional<SuiteVerdict> suite = {};       // absent before the end
  std::vector<RunFailure> failures = {};
  bool ended = false;                                   // however: there is an exit code
  std::span<const std::vector<Picture>> pictures = {};  // of the scenarios, in order; may be fewer
};

// An assertion that the run did not reach counts as not passed. A suite that fails though no
// assertion is has a case, and so has every failure.
Report report_of(const RunSoFar&);

// Reports a gate as four scenarios: "counts", "time", "assertions" and "scenarios". Each equal
// comparison is a case, and so is each finding. A note passes, a blocking finding fails, and one
// that is not gated or broke is an error. The policy decides undecided findings.
Report gate_report(const RunInfo&, GateSubject, GateLooks, GateVerdict, UndecidedPolicy);

// A gate that has not ended is an error, so that one which is killed leaves no green report.
Report gate_that_has_not_ended(const RunInfo&, const std::string& reason);

// Counts the cases and gives every one a name that no other has.
void count_and_name(Report&);

}  // namespace stepgate
