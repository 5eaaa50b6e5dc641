// SPDX-License-Identifier: MIT
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <map>

#include "base/seconds.h"
#include "report/append.h"
#include "report/html/html.h"

namespace stepgate {
namespace {

Tone tone_of(Severity severity) {
  switch (severity) {
    case Severity::blocks:
    case Severity::failed:
      return Tone::bad;
    case Severity::undecided:
    case Severity::not_gated:
      return Tone::open;
    case Severity::note:
      return Tone::none;
  }
  return Tone::bad;
}

Tone tone_of_outcome(const std::optional<Outcome>& outcome) {
  if (outcome == Outcome::passes) return Tone::good;
  return !outcome || outcome == Outcome::fails ? Tone::bad : Tone::open;
}

std::string html_finding(const ReportedFinding& found) {
  const Finding& finding = found.finding;
  const Tone tone = tone_of(finding.severity);
  std::string title(name_of(finding.kind));
  if (!finding.what.empty() && finding.what != title) title += ": " + finding.what;
  const bool is_of_one = found.workloads.size() == 1;
  if (is_of_one && !finding.workload.empty()) title += " of " + finding.workload;
  std::string html = fmt::format("<article class=\"finding {}\">\n{}<h3>{}</h3>\n", class_of(tone),
                                 html_badge(name_of(finding.severity), tone), html_text(title));
  html += html_paragraph(finding.words);
  html += html_paragraph(finding.mechanism);
  std::string workloads;
  for (const std::string& workload : found.workloads) {
    if (!workload.empty() && !is_of_one)
      append(workloads, "{}<code>{}</code>", workloads.empty() ? "" : ", ", html_text(workload));
  }
  if (!workloads.empty()) append(html, "<p class=\"dim\">{}</p>\n", workloads);
  if (is_of_one) html += html_paragraph(found.place, "dim code");
  return html + html_paragraph(found.accepted) + "</article>\n";
}

// Shows findings that need attention opened and notes collapsed.
std::string html_findings(const std::vector<ReportedFinding>& findings) {
  std::string wrong;
  std::string notes;
  std::int64_t noted = 0;
  for (const ReportedFinding& found : findings) {
    if (found.finding.severity == Severity::note) {
      notes += html_finding(found);
      ++noted;
    } else {
      wrong += html_finding(found);
    }
  }
  std::string html = "<section>\n<h2>What was found</h2>\n";
  html += wrong.empty() ? html_paragraph("Nothing that stands in the way.") : wrong;
  if (noted > 0)
    html += html_details(
        false,
        fmt::format("<h3>{}: better, new, known or accepted</h3>", counted_in_words(noted, "note")),
        notes);
  return html + "</section>\n";
}

std::string work_step_in_words(const std::optional<double>& seconds) {
  return seconds ? in_words(*seconds, MetricUnit::seconds) : "-";
}

std::string percent_in_words(double ratio) {
  return fmt::format("{:+.2f} %", 100 * (ratio - 1));
}

// Returns one axis for all workloads, so that they can be compared visually. A workload far outside
// would compress the others, so it ends in an arrow, and its number says how far.
Span axis_of(const ComparisonVerdict& comparison) {
  constexpr double margins_shown = 4;
  double reach = margins_shown * std::max(comparison.settings.margin, 0.001);
  for (const WorkloadVerdict& workload : comparison.workloads)
    reach = std::max(reach, 1.5 * workload.margin);
  return {1 - reach, 1 + reach};
}

std::vector<std::string> row_of(const WorkloadVerdict& workload,
                                const ComparisonVerdict& comparison) {
  std::string change = "-";
  std::string picture;
  if (workload.timed) {
    change = percent_in_words(workload.timed->ratio);
    if (workload.timed->interval) {
      append(change, " [{}, {}]", percent_in_words(workload.timed->interval->low),
             percent_in_words(workload.timed->interval->high));
    }
    const double limit = 1 + workload.margin;
    if (workload.margin > comparison.settings.margin)
      append(change, ", limit {}", percent_in_words(limit));
    picture = draw_interval({.value = workload.timed->ratio,
                             .interval = workload.timed->interval,
                             .limit = limit,
                             .allowed = {-std::numeric_limits<double>::infinity(), limit}},
                            tone_of_outcome(workload.outcome), axis_of(comparison));
  }
  return {html_text(workload.name),
          html_badge(in_words(workload.outcome), tone_of_outcome(workload.outcome)),
          html_text(work_step_in_words(workload.base_step_seconds)),
          html_text(work_step_in_words(workload.head_step_seconds)),
          html_text(change),
          picture,
          std::to_string(workload.pairs)};
}

std::string html_workloads(const ComparisonVerdict& comparison) {
  TextTable open;
  TextTable holding;
  for (const WorkloadVerdict& workload : comparison.workloads)
    (workload.outcome == Outcome::passes ? holding : open).push_back(row_of(workload, comparison));
  const Span axis = axis_of(comparison);
  const std::vector<std::string> titles{
      "workload",
      "outcome",
      "BASE step",
      "HEAD step",
      "change",
      fmt::format("from {} to {}, limit {}{}", percent_in_words(axis.low),
                  percent_in_words(axis.high), percent_in_words(1 + comparison.settings.margin),
                  comparison.settings.wider.empty() ? "" : " or as said"),
      "pairs"};
  std::string html = "<section>\n<h2>Time</h2>\n";
  html += html_paragraph(
      fmt::format(
          "{} of launches, {:.1f} s; intervals of HEAD / BASE have {:.3g} % confidence, and what "
          "passes does so by a bound on one side: its interval may reach over the limit",
          counted_in_words(comparison.pairs, "pair"), seconds(comparison.wall_time),
          100 * comparison.settings.confidence),
      "dim");
  html += html_table_of_html("Workloads that are not known to be within the margin", titles, open,
                             "words");
  if (!holding.empty()) {
    html +=
        html_details(open.empty() && std::ssize(holding) <= 20,
                     fmt::format("<h3>{} within the margin</h3>",
                                 counted_in_words(std::ssize(holding), "workload")),
                     html_table_of_html("Workloads within the margin", titles, holding, "words"));
  }
  for (const std::string& note : comparison.notes) html += html_paragraph("Note: " + note);
  return html + "</section>\n";
}

std::string value_of(const std::optional<double>& value, MetricUnit unit) {
  return value ? in_words(*value, unit) : "-";
}

std::string html_counts(const ReportedGate& gate) {
  std::map<std::string, bool> workloads;  // by name: whether any finding is about it
  for (const std::string& workload : gate.looks.counted) workloads[workload] = false;
  TextTable rows;
  for (const Finding& finding : gate.verdict.findings) {
    if (finding.kind != FindingKind::counts && finding.kind != FindingKind::losses) continue;
    if (workloads.contains(finding.workload)) workloads[finding.workload] = true;
    if (!finding.base && !finding.head) continue;
    rows.push_back({html_text(finding.workload), html_text(finding.what),
                    html_text(value_of(finding.base, finding.unit)),
                    html_text(value_of(finding.head, finding.unit)),
                    html_badge(name_of(finding.severity), tone_of(finding.severity))});
  }
  if (workloads.empty() && rows.empty()) return "";
  std::vector<std::string> same;
  for (const auto& [workload, differs] : workloads) {
    if (!differs) same.push_back(workload);
  }
  std::string html = "<section>\n<h2>What steps consist of</h2>\n";
  html += html_table_of_html("Counts that differ", {"workload", "count", "BASE", "HEAD", "finding"},
                             rows, "words");
  if (!same.empty()) {
    html += html_details(false,
                         fmt::format("<h3>{} whose every count and loss is BASE&#8217;s</h3>",
                                     counted_in_words(std::ssize(same), "workload")),
                         html_list(4, "Workloads", same));
  }
  return html + "</section>\n";
}

std::string html_head_assertions(const std::vector<HeadAssertion>& assertions) {
  if (assertions.empty()) return "";
  TextTable open;
  TextTable holding;
  for (const HeadAssertion& one : assertions) {
    const bool holds = one.outcome == Outcome::passes;
    (holds ? holding : open)
        .push_back({html_text(one.scenario + "." + one.name),
                    html_badge(outcome_in_words(one), tone_of_outcome(one.outcome)),
                    html_paragraph(one.reason)});
  }
  const std::vector<std::string> titles{"assertion", "outcome", "why"};
  std::string html = "<section>\n<h2>HEAD&#8217;s assertions</h2>\n" +
                     html_table_of_html("Assertions that do not pass", titles, open, "words");
  if (!holding.empty()) {
    html += html_details(
        false,
        fmt::format("<h3>{} that pass</h3>", counted_in_words(std::ssize(holding), "assertion")),
        html_table_of_html("Assertions that pass", titles, holding, "words"));
  }
  return html + "</section>\n";
}

std::string html_accepted(const GateVerdict& verdict) {
  TextTable rows;
  for (const Finding& finding : verdict.findings) {
    if (!finding.accepted) continue;
    const Accepted& entry = *finding.accepted;
    rows.push_back({html_text(finding.workload), html_text(finding.what),
                    html_text(entry.limit_text.empty() ? "-" : entry.limit_text),
                    html_text(entry.who), html_text(entry.until), html_paragraph(entry.why)});
  }
  if (rows.empty() && verdict.unused.empty()) return "";
  std::string html = "<section>\n<h2>What was accepted</h2>\n";
  html += html_table_of_html("Findings that a line of the repository accepts",
                             {"workload", "what", "limit", "by", "until", "why"}, rows, "words");
  html += html_list(3, "Entries that nothing needed, or that are over", verdict.unused);
  return html + "</section>\n";
}

}  // namespace

std::string html_gate(const ReportedGate& gate) {
  std::string html = html_findings(gate.findings);
  html += html_accepted(gate.verdict);
  if (gate.looks.comparison) html += html_workloads(*gate.looks.comparison);
  html += html_counts(gate);
  return html + html_head_assertions(gate.looks.assertions);
}

}  // namespace stepgate
