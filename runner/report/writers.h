// SPDX-License-Identifier: MIT
// The six writers of a report: text, JSON, HTML, JUnit, Markdown and annotations. They decide
// nothing, read no clock, and escape text from files for their format.
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

// Tables fit the width of the style, and print_fitted (text/table.h) fits all other lines.

// Prints a decided scenario: the device, a table of the variants, every assertion with its outcome
// and reason, and a last line with the scenario's outcome and cost.
void print_verdict(std::ostream&, const ReportedScenario&, Style);
// Prints one line for a passing scenario, and otherwise the full text of print_verdict between
// empty lines.
void print_outcome(std::ostream&, const ReportedScenario&, Style);
// The counts of an attached program; its assertions and notes where it has any.
void print_program(std::ostream&, const ReportedScenario&, Style);
// Prints one indented line for each thing. Where variants differ in a thing, each group of equal
// variants has its own line, and a star marks the first:
//   model      mlp, layers 4, hidden 1024, tf32
//   sync     * baseline  step
//              fix       none
void print_steps(std::ostream&, const std::vector<ReportedThing>&);
// Prints the mechanism as a section with a title.
void print_mechanism(std::ostream&, const ReportedMechanism&, const Style&);
// Prints what the articles say beside what was measured, as a table.
void print_figures(std::ostream&, const Report&, const Style&);
// Prints the points of each sweep as a table, and where its curves cross.
void print_sweeps(std::ostream&, const Report&, const Style&);
// Prints one line for each decided scenario.
void print_suite_table(std::ostream&, const Report&, Style);
// Prints whether the suite as a whole fails and by which lines. Then prints how many scenarios have
// each result, with the lines that cause it.
void print_tally(std::ostream&, const Report&, Style);
// Prints the workloads and assertions of a gate that pass and so have no finding.
void print_gate_looks(std::ostream&, const ReportedGate&);
// Prints the findings of a gate, with the result in the last line.
void print_gate(std::ostream&, const Report&, Style);

// JSON is for programs. It is complete: a third party can recompute the contrasts from the rounds,
// the e-values from the contrasts, and every outcome from the e-values. ci/recompute.py does so,
// and tests/cli/recompute_test.cpp runs it on simulated suites. The first lines of ci/recompute.py
// list what it does not check.

// Version of docs/json_schema.json, which describes every field. It must change whenever a field is
// added, removed or changes its meaning.
constexpr int report_schema = 4;

// Writes one JSON object on one line, so that a file of several is JSON Lines. Times in integer
// nanoseconds end in `_ns`; values of sides are in base units. Fingerprint and seed are hexadecimal
// strings, since JSON numbers lose 64-bit integers. Unknown values are null. The rounds come from
// the measurement, since reports do not keep them.
void write_json(std::ostream&, const RunInfo&, const ReportedScenario&, const Measurement&,
                const WallTimes&);
// Writes the last line of a completed run of several scenarios; `whole` is its wall time, and the
// parts are those of the whole run.
void write_json(std::ostream&, const Report&, const WallTimes&, std::chrono::nanoseconds whole);
// Writes one JSON object per line, schema "stepgate.gate/2" (docs/gate.md): a completed gate, every
// timed workload, every finding, and the end.
void write_gate_json(std::ostream&, const Report&);

// HTML is one page for people, report.html. Cases that did not pass come first and opened; passing
// ones are collapsed. The page loads nothing, so it looks the same as a CI artifact, in a mail and
// in ten years.

// Largest total size of the timelines and memory pictures of a page, in bytes. Browsers need
// seconds for larger pages. Scenarios that did not pass get the space first.
constexpr std::size_t most_picture_bytes = 3 * 1024 * 1024 / 2;

void write_html(std::ostream&, const Report&, std::size_t picture_bytes = most_picture_bytes);

// JUnit XML is read by GitLab, Jenkins, Buildkite and actions for GitHub, and these readers differ.
// Some keep only one case per name or one failure per case. Some read the attribute of a failure,
// some its content. So names are unique, each case has one result, and attribute and content are
// equal.

// Writes a testsuite for each scenario and a testcase for each assertion. The time of a scenario is
// divided equally among its assertions, which are measured together.
void write_junit(std::ostream&, const Report&);

// Markdown is for the page that a CI system shows beside its log. Cases that did not pass come
// first, with collapsed reasons; everything else is in one table.

// Size limit in bytes of a step's summary on GitHub and of an annotation in Buildkite. Larger ones
// are rejected as a whole.
constexpr std::size_t most_summary_bytes = 1024 * 1024;

// Parts that do not fit are omitted from the end, and the last line says how many.
std::string summary_markdown(const Report&, std::size_t most_bytes = most_summary_bytes);

// Annotations are GitHub workflow commands: lines of output that GitHub shows at a line of a file.
// https://docs.github.com/en/actions/reference/workflow-commands-for-github-actions

enum class Annotations { none, github };

// The choices by the names that --annotations accepts.
std::map<std::string, Annotations> annotation_choices();

// Writes an error for every assertion that failed or could not be evaluated, and a warning for
// every undecided one, at its line. GitHub shows ten of each per step, so at most nine are written,
// and one that says how many more there are.
void write_annotations(std::ostream&, const Report&);

// GitHub ignores commands that are printed between these two lines. The author of a scenario cannot
// know the token, so text from a file cannot resume them early.
std::string stop_commands(const std::string& token);
std::string resume_commands(const std::string& token);

}  // namespace stepgate
