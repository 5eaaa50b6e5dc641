// SPDX-License-Identifier: MIT
// Prints a run or a gate as text.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <ostream>
#include <utility>

#include "base/text/visible_text.h"
#include "report/command_again.h"
#include "report/text/print_gate.h"
#include "report/writers.h"

namespace stepgate {
namespace {

void print_numbers(std::ostream& out, const TextTable& rows, const Style& style) {
  if (rows.empty()) return;
  std::vector<Align> alignment(rows.front().size(), Align::right);
  alignment.front() = Align::left;
  out << '\n';
  print_table(out, alignment, rows, style.width);
}

void print_assertions(std::ostream& out, std::string_view title,
                      const std::vector<ReportedAssertion>& assertions, Style style) {
  if (assertions.empty()) return;
  std::size_t name_width = 0;
  for (const ReportedAssertion& assertion : assertions)
    name_width = std::max(name_width, assertion.name.size());
  out << '\n' << title << '\n';
  for (const ReportedAssertion& assertion : assertions) {
    out << fmt::format("  {}  {:<{}}  {}\n", outcome_cell(assertion.outcome, style), assertion.name,
                       name_width, one_line(assertion.text));
    out << fmt::format("  {:<{}}  {}\n", "", outcome_width, one_line(assertion.reason));
    if (!assertion.clocks.empty())
      out << fmt::format("  {:<{}}  {}\n", "", outcome_width, assertion.clocks);
  }
}

constexpr std::string_view simulated_mark = "SIMULATED";

void print_last_line(std::ostream& out, const ReportedVerdict& decided, const std::string& more,
                     Style style) {
  const Verdict& verdict = decided.verdict;
  if (decided.simulated) out << simulated_mark << ' ';
  out << verdict.scenario << ": ";
  if (!decided.fault.empty()) {
    out << coloured(decided.fault, colour_of(Outcome::fails), style) << ": "
        << visible_lines(decided.why) << '\n';
    return;
  }
  out << coloured(verdict.outcome, style);
  if (!verdict.skipped_because.empty()) out << ": " << one_line(verdict.skipped_because);
  if (verdict.planned_only && !verdict.program) out << " by its plans";
  out << (decided.cost.empty() ? "" : " ") << decided.cost << more << '\n';
}

void print_again(std::ostream& out, const std::string& command) {
  if (!command.empty()) out << one_line(again_in_words(command)) << '\n';
}

// Returns names like " (a.line, b.line)"; of many names only the first ones.
std::string in_brackets(std::span<const std::string> names) {
  constexpr std::size_t most_named = 6;
  if (names.empty()) return "";
  const std::string rest =
      names.size() > most_named ? fmt::format(" and {} more", names.size() - most_named) : "";
  return fmt::format(" ({}{})", fmt::join(names.first(std::min(names.size(), most_named)), ", "),
                     rest);
}

void print_notes(std::ostream& out, std::span<const std::string> notes) {
  for (const std::string& note : notes) out << "note: " << visible_lines(note) << '\n';
}

constexpr std::size_t most_named_workloads = 4;
constexpr int severity_width = 9;  // of "undecided"

std::string workloads_in_words(std::span<const std::string> workloads) {
  const std::size_t named = std::min(workloads.size(), most_named_workloads);
  const std::string words = fmt::format("{}", fmt::join(workloads.first(named), ", "));
  return workloads.size() > named ? fmt::format("{} and {} more", words, workloads.size() - named)
                                  : words;
}

void print_finding(std::ostream& out, const ReportedFinding& found, Style style) {
  const Finding& finding = found.finding;
  const std::string_view colour =
      finding.severity == Severity::blocks || finding.severity == Severity::failed
          ? colour_of(Outcome::fails)
      : finding.severity == Severity::note ? std::string_view()
                                           : colour_of(Outcome::undecided);
  const std::string cell = fmt::format("{:<{}}", name_of(finding.severity), severity_width);
  out << fmt::format("  {}  {}  {}\n", colour.empty() ? cell : coloured(cell, colour, style),
                     name_of(finding.kind), one_line(workloads_in_words(found.workloads)));
  const std::string indent(static_cast<std::size_t>(severity_width) + 4, ' ');
  for (const std::string& line : {finding.words, finding.mechanism, found.place, found.accepted}) {
    if (!line.empty()) out << indent << one_line(line) << '\n';
  }
}

void print_counts(std::ostream& out, const ReportedProgram& program, const Style& style) {
  for (const std::string& line : program.lines) out << "  " << one_line(line) << '\n';
  if (program.counts.empty()) return;
  std::vector<Align> alignment(program.counts.front().size(), Align::right);
  alignment.front() = alignment.back() = Align::left;
  std::vector<std::vector<std::string>> rows = program.counts;
  for (std::vector<std::string>& row : rows) row.back() = one_line(row.back());
  out << '\n';
  print_table(out, alignment, rows, style.width);
}

}  // namespace

void print_steps(std::ostream& out, const std::vector<ReportedThing>& steps) {
  for (const ReportedThing& thing : steps) {
    std::size_t width = 0;
    for (const ReportedThing::Alike& alike : thing.groups)
      width = std::max(width, alike.variants.size());
    for (const ReportedThing::Alike& alike : thing.groups) {
      const bool first = &alike == &thing.groups.front();
      out << fmt::format("  {:<9}{}", first ? thing.thing : "",
                         thing.differs() && first ? "* " : "  ");
      if (thing.differs()) out << fmt::format("{:<{}}  ", alike.variants, width);
      out << one_line(alike.words) << '\n';
    }
  }
}

void print_mechanism(std::ostream& out, const ReportedMechanism& mechanism, const Style& style) {
  out << "\nmechanism\n";
  if (!mechanism.unavailable.empty()) {
    out << "  " << mechanism.unavailable << '\n';
    return;
  }
  std::size_t width = 0;
  for (const auto& variant : mechanism.variants) width = std::max(width, variant.variant.size());
  for (const auto& variant : mechanism.variants)
    out << fmt::format("  {:<{}}  {}\n", variant.variant, width, variant.diagnosis);
  for (const std::string& separation : mechanism.separations) out << "  " << separation << '\n';
  print_numbers(out, mechanism.time, style);
  print_numbers(out, mechanism.slowest, style);
  for (const std::string& ranks : mechanism.ranks) out << "  " << ranks << '\n';
  print_numbers(out, mechanism.memory, style);
  out << "  " << mechanism.cost << '\n';
}

void print_verdict(std::ostream& out, const ReportedScenario& scenario, Style style) {
  const ReportedVerdict& decided = *scenario.decided;
  const Verdict& verdict = decided.verdict;
  out << scenario.name << (verdict.planned_only ? ", " : " ") << decided.where << '\n';
  if (!verdict.claim.empty()) out << one_line(verdict.claim) << '\n';
  if (!decided.calibrated.empty()) out << "calibrated: " << decided.calibrated << '\n';
  if (!decided.steps.empty()) out << "\nstep\n";
  print_steps(out, decided.steps);
  if (!decided.program.lines.empty()) out << "\nprogram\n";
  print_counts(out, decided.program, style);
  print_numbers(out, decided.variants, style);
  print_assertions(out, "regime", decided.regime, style);
  print_assertions(out, "expect", decided.assertions, style);
  if (decided.mechanism) print_mechanism(out, *decided.mechanism, style);
  if (!verdict.environment.empty()) out << "\nenvironment\n";
  for (const std::string& line : verdict.environment) out << "  " << one_line(line) << '\n';
  out << '\n';
  print_notes(out, verdict.notes);
  print_last_line(out, decided, decided.rates, style);
  print_again(out, scenario.again);
}

void print_program(std::ostream& out, const ReportedScenario& scenario, Style style) {
  const ReportedVerdict& decided = *scenario.decided;
  out << one_line(decided.verdict.claim) << '\n';
  print_counts(out, decided.program, style);
  print_numbers(out, decided.differences, style);
  if (decided.mechanism) print_mechanism(out, *decided.mechanism, style);
  // Accepted counts make an assertion each: those that pass are one line.
  constexpr std::size_t most_passing = 4;
  std::vector<ReportedAssertion> shown = decided.assertions;
  const auto passes = [](const ReportedAssertion& each) { return each.outcome == Outcome::passes; };
  const auto passing = static_cast<std::size_t>(std::ranges::count_if(shown, passes));
  if (passing > most_passing) std::erase_if(shown, passes);
  print_assertions(out, "expect", shown, style);
  if (passing > most_passing)
    out << fmt::format("\n  {} of {} pass\n", passing, decided.assertions.size());
  if (!decided.verdict.notes.empty()) out << '\n';
  print_notes(out, decided.verdict.notes);
  if (decided.assertions.empty() && decided.fault.empty()) return;
  out << '\n';
  print_last_line(out, decided, "", style);
  print_again(out, scenario.again);
}

void print_outcome(std::ostream& out, const ReportedScenario& scenario, Style style) {
  const Verdict& verdict = scenario.decided->verdict;
  // Scenarios after the one that lost the device have the same reason and are only counted in the
  // tally.
  if (verdict.not_run && verdict.outcome != Outcome::fails) return;
  if (verdict.outcome != Outcome::passes || !scenario.decided->fault.empty()) {
    out << '\n';
    print_verdict(out, scenario, style);
    out << '\n';
    return;
  }
  const std::span all(verdict.notes);
  print_notes(out, all.first(verdict.notes_told_always));
  const auto left = std::ssize(all) - static_cast<std::ptrdiff_t>(verdict.notes_told_always);
  print_last_line(
      out, *scenario.decided,
      left == 0 ? "" : fmt::format("; {}, which --verbose tells", counted_in_words(left, "note")),
      style);
}

void print_figures(std::ostream& out, const Report& report, const Style& style) {
  if (report.figures.empty()) return;
  out << "\nthe articles' figures, and what is true of them here\n";
  const TextTable rows = figure_table(report.figures);
  print_table(out, std::vector<Align>(rows.front().size(), Align::left), rows, style.width);
  out << '\n';
}

void print_sweeps(std::ostream& out, const Report& report, const Style& style) {
  for (const ReportedSweep& sweep : report.sweeps) {
    out << fmt::format("\nsweep of {}, samples a second and assertions\n", sweep.name);
    print_numbers(out, sweep.table, style);
    for (const std::string& crossing : sweep.crossings) out << "  " << crossing << '\n';
    out << '\n';
  }
}

void print_suite_table(std::ostream& out, const Report& report, Style style) {
  std::vector<std::vector<std::string>> rows;
  for (const ReportedScenario& scenario : report.scenarios) {
    if (scenario.decided == nullptr) continue;
    const ReportedVerdict& decided = *scenario.decided;
    const Verdict& verdict = decided.verdict;
    rows.push_back(
        {decided.fault.empty() ? outcome_cell(verdict.outcome, style)
                               : coloured(fmt::format("{:<{}}", decided.ended, outcome_width),
                                          colour_of(Outcome::fails), style),
         scenario.name, verdict.rounds == 0 ? "" : counted_in_words(verdict.rounds, "round"),
         decided.simulated ? std::string(simulated_mark) : ""});
  }
  print_table(out, {}, rows);
}

void print_tally(std::ostream& out, const Report& report, Style style) {
  const std::string failed = coloured(Outcome::fails, style);
  for (const std::string& line : report.suite->failed) out << failed << ": " << line << '\n';
  if (!report.suite->failed.empty()) print_again(out, command_again(report.run));
  std::int64_t scenarios = 0;
  std::string tally;
  for (const TallyEntry& row : report.tally) {
    scenarios += static_cast<std::int64_t>(row.count);
    tally += fmt::format(", {} {}{}", row.count, row.how, in_brackets(row.names));
  }
  if (report.failed_as_suite) tally += fmt::format("; {} as a suite", failed);
  if (!report.run.gated) tally += "; not gated: nothing was measured";
  out << (report.run.simulated ? fmt::format("{} ", simulated_mark) : "")
      << counted_in_words(scenarios, "scenario") << tally << '\n';
}

void print_gate_looks(std::ostream& out, const ReportedGate& gate) {
  const auto line = [&](std::string_view kind, const std::string& workload,
                        const std::string& words) {
    out << fmt::format("  passes     {}  {}\n             {}\n", kind, one_line(workload),
                       one_line(words));
  };
  out << '\n';
  if (gate.looks.comparison) {
    for (const WorkloadVerdict& workload : gate.looks.comparison->workloads) {
      if (workload.outcome == Outcome::passes) line("time", workload.name, workload.reason);
    }
  }
  for (const HeadAssertion& assertion : gate.looks.assertions) {
    if (assertion.outcome == Outcome::passes)
      line(name_of(assertion.kind), assertion.scenario + "." + assertion.name, assertion.reason);
  }
}

void print_gate(std::ostream& out, const Report& report, Style style) {
  const ReportedGate& gate = *report.gate;
  if (!gate.findings.empty()) out << '\n';
  for (const ReportedFinding& finding : gate.findings) print_finding(out, finding, style);
  if (!gate.findings.empty()) out << '\n';
  for (const std::string& unused : gate.verdict.unused) print_gate_note(out, unused);
  print_again(out, command_again(report));
  if (report.simulated) out << "SIMULATED, nothing was measured: ";
  out << gate.answer << gate.policy << '\n' << std::flush;
}

}  // namespace stepgate
