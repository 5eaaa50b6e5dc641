// SPDX-License-Identifier: MIT
// The six writers of a report: text, JSON, HTML, JUnit, Markdown and annotations. None decides
// anything or knows a clock, and each makes the words of files safe for its format.
#pragma once

#include <chrono>
#include <cstddef>
#include <iosfwd>
#include <map>
#include <string>
#include <vector>

#include "measure/rounds/measurement.h"
#include "measure/wall_times.h"
#include "report/report.h"
#include "report/text/table.h"

namespace stepgate {

// A decided scenario: the device, a table of the variants, every assertion with its outcome and
// reason, and a last line with the outcome of the scenario and what it cost.
void print_verdict(std::ostream&, const ReportedScenario&, Style);
// One line of what passes, and all of anything else: what print_verdict prints, between empty
// lines.
void print_outcome(std::ostream&, const ReportedScenario&, Style);
// Prints one indented line for each thing. Where variants differ in a thing, each group of equal
// variants has its own line, and a star marks the first:
//   model      mlp, layers 4, hidden 1024, tf32
//   sync     * baseline  step
//              fix       none
void print_steps(std::ostream&, const std::vector<ReportedThing>&);
// A section with its title.
void print_mechanism(std::ostream&, const ReportedMechanism&);
// One line a decided scenario.
void print_suite_table(std::ostream&, const Report&, Style);
// Whether the suite as a whole fails and by which lines, and at the very end how many
// scenarios ended how, with the lines that decide.
void print_tally(std::ostream&, const Report&, Style);
// Every workload of a gate that is as fast and every assertion that passes: no finding.
void print_gate_looks(std::ostream&, const ReportedGate&);
// Its findings, and the answer in the last line.
void print_gate(std::ostream&, const Report&, Style);

// JSON is for programs. It is complete: a third party can recompute the contrasts from the rounds,
// the e-values from the contrasts, and every outcome from the e-values. ci/recompute.py does so,
// and tests/cli/recompute_test.cpp runs it on simulated suites. Its first lines say what it takes
// on trust.

// Version of docs/json_schema.json, which says what every field is. It changes whenever a field
// changes its meaning, comes or goes away.
constexpr int report_schema = 4;

// One JSON object on one line, so that a file of several is JSON Lines. Times in integer
// nanoseconds end in `_ns`; values of sides are in base units; the fingerprint and the seed are
// hexadecimal strings, since JSON numbers lose 64-bit integers. Unknown values are null. The
// measurement has the rounds, which no report keeps.
void write_json(std::ostream&, const RunInfo&, const ReportedScenario&, const Measurement&,
                const WallTimes&);
// Writes the last line of a run of several scenarios that has come to its end; the times are those
// of the whole run, which took so long.
void write_json(std::ostream&, const Report&, const WallTimes&, std::chrono::nanoseconds whole);
// One object a line, schema "stepgate.gate/2" (docs/gate.md): a gate that has come to its end,
// every workload that was timed, every finding, the end.
void write_gate_json(std::ostream&, const Report&);

// HTML is one page for people, report.html. What did not pass stands first and open; what passed is
// folded. The page loads nothing, so it looks the same as a CI artifact, in a mail and in ten
// years.

// Most bytes of all timelines and pictures of memory of a page. A page with more takes a browser
// seconds; scenarios that did not pass get the room first.
constexpr std::size_t most_picture_bytes = 2 * 1024 * 1024;

void write_html(std::ostream&, const Report&, std::size_t picture_bytes = most_picture_bytes);

// JUnit XML is read by GitLab, Jenkins, Buildkite and actions for GitHub, and these readers differ.
// Some keep only one case per name or one failure per case. Some read the attribute of a failure,
// some its content. So names are unique, a case has one end, and attribute and content say the
// same.

// A testsuite a scenario, a testcase an assertion. The time of a scenario is shared equally by its
// assertions, which are measured together.
void write_junit(std::ostream&, const Report&);

// Markdown is for the page that a CI system shows beside its log. What did not pass comes first,
// with its reason behind a click; everything else is in one table.

// Most bytes that GitHub takes as a step's summary, and Buildkite as an annotation: more is refused
// as a whole.
constexpr std::size_t most_summary_bytes = 1024 * 1024;

// Parts that do not fit are left out from the end, and the last line says how many.
std::string summary_markdown(const Report&, std::size_t most_bytes = most_summary_bytes);

// Annotations are GitHub workflow commands: lines of output that become remarks at a line of a
// file. https://docs.github.com/en/actions/reference/workflow-commands-for-github-actions

enum class Annotations { none, github };

// By the names that --annotations takes.
std::map<std::string, Annotations> annotation_choices();

// An error for every assertion that failed or could not be tried, a warning for every one that was
// left open, at its line. GitHub shows ten of each a step: at most nine, and one that says how many
// more there are.
void write_annotations(std::ostream&, const Report&);

// GitHub executes no command that is printed between these two lines. The author of a scenario
// cannot know the token, so no file can end the pause.
std::string stop_commands(const std::string& token);
std::string resume_commands(const std::string& token);

}  // namespace stepgate
