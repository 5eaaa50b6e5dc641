// SPDX-License-Identifier: MIT
// The content of every report of a run or a gate. report_of makes it from verdicts, and gate_report
// from findings. The six writers of writers.h only format it. Texts are unescaped; each writer
// escapes them for its format.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
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
#include "report/reported_figure.h"
#include "report/reported_program.h"
#include "report/run_info.h"
#include "scenario/scenario.h"

namespace stepgate {

// "scenarios/a.toml:12"; empty if not known.
std::string place_in_words(const Place&);

// A row of titles, then one row for each item, all with equally many cells. Empty means no table.
using TextTable = std::vector<std::vector<std::string>>;

// A range of numbers; infinite ends are open.
struct Span {
  double low = 0;
  double high = 0;
};

// A number with its limit, in the terms of the assertion's author: in base units, or a factor.
struct ReportedNumber {
  double value = 0;
  std::optional<RatioInterval> interval = {};  // infinite on a side that no bound limits
  double limit = 0;
  Span allowed = {};                // the range allowed by the limit
  std::string value_words = {};     // "1.24x"; empty: a table says it
  std::string interval_words = {};  // " [1.2x, 1.3x]", ", at least 1.2x"
  std::string limit_words = {};     // "at least 1.05x"
};

// The expectation's `relation` determines the allowed side of the limit, and `within` the allowed
// distance from it. nullopt for assertions without such a number.
std::optional<ReportedNumber> number_of(const AssertionVerdict&, const Expectation*);

struct ReportedAssertion {
  std::string name;
  std::string text;  // as written in the file
  Place place;
  Outcome outcome = Outcome::undecided;  // without the suite
  std::string reason;
  std::string clocks;  // the difference split by clock; empty if unknown
  std::optional<ReportedNumber> number;
};

// failed: an assertion fails. error: broken, not gated, not reached, or the device failed.
enum class CaseEnd { passed, failed, error, skipped };
CaseEnd end_of_undecided(UndecidedPolicy);

// The type of a case that the run did not reach.
inline constexpr std::string_view not_run = "not run";
// Results of a scenario in the last line of a run.
inline constexpr std::string_view device_failed = "device failed";
inline constexpr std::string_view program_failed = "program failed";

// An assertion, or another item that a CI system counts, with its result.
struct ReportedCase {
  std::string name = {};   // "scenario.assertion", of no other case of the run
  std::string title = {};  // the name for people, not necessarily unique
  Place place = {};
  CaseEnd end = CaseEnd::error;
  std::string type = {};  // in a word: "passes", "fails", "undecided", "broken", "device", ...
  std::string why = {};
  std::string message = {};    // the assertion and the reason
  std::string by_itself = {};  // the assertion's own outcome and reason; empty where `why` has them
  const ReportedAssertion* assertion = nullptr;  // in the verdict's [expect]; null for other cases
};

struct CaseCounts {
  std::array<std::size_t, 4> by_end{};

  std::size_t operator[](CaseEnd end) const { return by_end[static_cast<std::size_t>(end)]; }
  std::size_t all() const;
  // The worst end of any case, in the order failed, error, skipped, passed; nullopt without cases.
  std::optional<CaseEnd> gravest() const;
};

// A knob table of a step, or another of its properties.
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

// The mechanism from traces. Memory by purpose is included only where it differs between variants
// or from the plan.
struct ReportedMechanism {
  struct Diagnosed {
    std::string variant;
    std::string diagnosis;
  };
  std::string unavailable;  // why the following is missing; empty where it is not
  std::vector<Diagnosed> variants;
  std::vector<std::string> separations;
  TextTable time;                  // where the time of a traced step goes, one row per variant
  TextTable slowest;               // at most eight rows: count, time and share of a traced step
  std::vector<std::string> ranks;  // says which rank supplies each number of a variant
  TextTable memory;
  std::string cost;  // "7 traced rounds of 2 steps, 1.2 s; ..."
};
ReportedMechanism reported_mechanism(const Mechanism&);

// A verdict with its texts.
struct ReportedVerdict {
  Verdict verdict;         // all its numbers, for programs
  bool simulated = false;  // nothing was measured
  std::string device;      // in words; empty where no device is used
  std::string where;       // "on NVIDIA H200", or that its plans decide
  std::string ended;       // in a word or two: its outcome, "not run", "device failed", "broken"
  std::string fault;       // "the device failed", "not run", "broken"; empty: its assertions decide
  std::string why;         // of the fault
  std::string calibrated;  // "batch.size = 64, where ..."; empty where nothing was
  std::vector<ReportedFigure> figures;  // of the articles that the scenario answers
  std::vector<ReportedThing> steps;
  std::vector<ReportedAssertion> regime;
  std::vector<ReportedAssertion> assertions;
  ReportedProgram program;  // of an attached program, or of a recorded one
  TextTable differences;    // from what a recorded program is compared with
  TextTable variants;       // their numbers; columns that nothing is known of are left out
  std::optional<ReportedMechanism> mechanism;
  std::string cost;   // "after 6 rounds of 2 loads, 0.93 GPU seconds"; empty: nothing was measured
  std::string rates;  // how far it can be trusted: "; of this process: at most 1 % ..."
};

// Without a scenario (null), the allowed side of each limit is unknown.
ReportedVerdict reported_verdict(Verdict, const Scenario*);

// A picture of a scenario, as draw_timeline and draw_memory write it.
struct Picture {
  std::string title;  // "Timelines"
  std::string words;  // description, as alternative text
  std::string svg;
};

struct ReportedScenario {
  std::string name = {};
  std::vector<ReportedCase> cases = {};
  CaseCounts counts = {};
  // The result in a word or two: "fails", "broken", "device failed", "not run". Includes an
  // assertion that only the suite makes fail.
  std::string ended = {};
  CaseEnd end = CaseEnd::error;                         // the worst of its cases
  std::shared_ptr<const ReportedVerdict> decided = {};  // null where there is no verdict
  std::span<const Picture> pictures = {};
  std::string again = {};  // the command that shows it again; empty where it passed
};

// Makes a case for every assertion of [expect], and for every failed one of [regime]. The scenario
// may be null.
ReportedScenario reported_scenario(Verdict, const Scenario*, UndecidedPolicy, const RunInfo& = {});

struct GateSubject {
  std::string base;  // as given
  std::string head;
  std::optional<Introduction> both;  // absent where one of them sent no hello
  double margin = 0;
  std::string margin_source = {};                 // "stepgate.toml:2"; empty: the command line
  std::vector<GatePart> only = {};                // compared parts; empty means all
  std::int64_t wider = 0;                         // number of workloads with a wider margin
  std::chrono::nanoseconds most_timing{0};        // limit of the comparison; 0 where there is none
  std::map<std::string, SweepPoint> points = {};  // of scenarios of sweeps, by name
};

// The program as given, with its description of itself, if any (`hello` may be null).
std::string program_in_words(const std::string& given, const Hello*);
// "2 %, more for 9 workloads".
std::string margin_in_words(const GateSubject&);

// The subjects that a gate compared.
struct GateLooks {
  std::vector<std::string> counted;  // names of workloads
  std::optional<ComparisonVerdict> comparison;
  std::vector<HeadAssertion> assertions;
};

// A finding that several workloads share, reported once.
struct ReportedFinding {
  Finding finding;                     // the first of the merged findings
  std::vector<std::string> workloads;  // an empty name stands for the gate as a whole
  std::string place;                   // in words, where the line is known
  std::string accepted;  // "accepted up to 5 % by a until 2026-12-31: why"; may be empty
};

// The content of a completed gate.
struct ReportedGate {
  GateSubject subject;
  GateLooks looks;
  GateVerdict verdict;  // `findings` has its findings for people
  std::string base;     // in words, as is `head`
  std::string head;
  std::string device;  // empty where neither side reported it
  std::string margin;
  std::vector<ReportedFinding> findings;
  std::string answer;  // "BLOCKED: 3 x count", "PASSED: ..."
  std::string policy;  // why an undecided gate passes or fails by policy; may be empty
};

// The number of scenarios with this result, and the assertions or scenarios that cause it.
struct TallyEntry {
  std::string_view how;  // "passes", or "pass" of several; "device failed", "not run"
  std::size_t count = 0;
  std::vector<std::string> names = {};
};

struct ReportedSuite {
  SuiteVerdict verdict;
  // The failures in the suite: a line among the others, or the whole suite.
  std::vector<std::string> failed;
};

// The curve of a variant of a sweep.
struct SweepCurve {
  std::string variant;
  std::vector<std::optional<double>> samples_per_s;  // by point; absent where not measured
};

// The points of a [sweep] side by side.
struct ReportedSweep {
  std::string name;                 // of the file
  std::string knob;                 // "batch.size"
  std::vector<std::string> values;  // of the knob, as files write them; a point for each
  std::vector<double> numbers;      // these values in base units
  std::vector<SweepCurve> curves;   // one for each variant
  TextTable table;                  // a row for each point: throughputs, assertions
  std::vector<std::string> crossings;
};

struct Report {
  std::string verb = "run";  // or "gate", "attach", "read"
  RunInfo run = {};
  bool simulated = false;  // some of it was computed instead of measured
  bool ended_early = false;
  // Where there are cases without a scenario, they come first, in a scenario "stepgate".
  std::vector<ReportedScenario> scenarios = {};
  CaseCounts counts = {};
  std::vector<TallyEntry> tally = {};
  std::optional<ReportedSuite> suite = {};   // absent before the end of the run
  std::vector<ReportedFigure> figures = {};  // of all scenarios, in order
  std::vector<ReportedSweep> sweeps = {};    // of files of which more than one point was decided
  bool failed_as_suite = false;              // although no scenario fails by itself
  // Exit code of the process; absent before the end, and where a signal ended it.
  std::optional<ExitCode> code = {};
  std::shared_ptr<const ReportedGate> gate = {};  // null for a run, and for an unfinished gate
};

// The cause that ended a run early, or that leaves it without a result.
struct RunFailure {
  std::string type;  // "request", "device", "interrupted", "not gated"
  Place place;       // of the error, if it is in a file
  std::string message;
};

// The state of a possibly unfinished run.
struct RunSoFar {
  RunInfo run = {};
  UndecidedPolicy undecided = UndecidedPolicy::skip;
  std::vector<const Scenario*> scenarios = {};  // all scenarios of the run, in order
  std::vector<ReportedScenario> decided = {};   // the first ones, which are decided
  std::optional<SuiteVerdict> suite = {};       // absent before the end
  std::vector<RunFailure> failures = {};
  bool ended = false;                                   // true once there is an exit code
  std::span<const std::vector<Picture>> pictures = {};  // by scenario, in order; may be shorter
};

// An assertion that the run did not reach counts as not passed. Every failure has a case, and so
// has a suite that fails although no assertion does.
Report report_of(const RunSoFar&);

// Reports a gate as four scenarios: "counts", "time", "assertions" and "scenarios". Each finding is
// a case, and so is each workload and assertion that no finding is about, by its own outcome. A
// note passes, what blocks fails, and what is not gated or failed is an error. The policy decides
// what is undecided.
Report gate_report(const RunInfo&, GateSubject, GateLooks, GateVerdict, UndecidedPolicy);

// An unfinished gate is an error, so that a killed gate leaves no passing report.
Report gate_that_has_not_ended(const RunInfo&, const std::string& reason);

// Counts the cases and makes their names unique.
void count_and_name(Report&);

}  // namespace stepgate
