// SPDX-License-Identifier: MIT
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <vector>

#include "base/seconds.h"
#include "base/text/visible_text.h"
#include "report/append.h"
#include "report/command_again.h"
#include "report/writers.h"

namespace stepgate {
namespace {

// Escapes all possible markup as entities, also for table cells. Truncates long text, since a
// scenario file may be one long assertion.
std::string markdown_text(std::string_view text) {
  constexpr std::size_t most_bytes = 4000;
  constexpr std::string_view harmless = " ,.;=+-/'";  // except at the beginning of a line
  std::string safe;
  for (const char letter : beginning_of(one_line(text), most_bytes)) {
    const bool is_plain = (letter & 0x80) != 0 || (letter >= '0' && letter <= '9') ||
                          (letter >= 'a' && letter <= 'z') || (letter >= 'A' && letter <= 'Z') ||
                          (harmless.find(letter) != std::string_view::npos && !safe.empty());
    if (is_plain) {
      safe += letter;
    } else {
      append(safe, "&#{};", static_cast<int>(letter));
    }
  }
  return safe;
}

// Text that grows by whole parts up to a size limit, and counts the parts that did not fit.
class LimitedText {
 public:
  explicit LimitedText(std::size_t most_bytes) : most_bytes_(most_bytes) {}

  void add(const std::string& part) {
    if (left_out_ > 0 || text_.size() + part.size() + room_for_last_line > most_bytes_) {
      ++left_out_;
      return;
    }
    text_ += part;
  }

  std::string text() const {
    if (left_out_ == 0) return text_;
    return text_ + fmt::format("\n\n{} more parts found no room here.\n", left_out_);
  }

 private:
  static constexpr std::size_t room_for_last_line = 80;
  std::size_t most_bytes_;
  std::size_t left_out_ = 0;
  std::string text_;
};

std::string summary_headline(const Report& report) {
  struct Tally {
    CaseEnd end;
    const char* words;
  };
  constexpr std::array tallies{Tally{CaseEnd::failed, "failed"},
                               Tally{CaseEnd::error, "could not be tried"},
                               Tally{CaseEnd::skipped, "left open"}};
  std::string text = "## stepgate: ";
  if (report.simulated) text += "SIMULATED: ";
  for (const Tally& tally : tallies) {
    const std::size_t count = report.counts[tally.end];
    if (count > 0) append(text, "{} {}, ", count, tally.words);
  }
  append(text, "{} of {} {} passed\n\n", report.counts[CaseEnd::passed], report.counts.all(),
         report.verb == "gate" ? "comparisons" : "assertions");
  if (report.simulated) text += "Times are computed: **nothing was measured.**\n\n";
  return text;
}

// Adds a row for every case that did not pass.
void add_what_did_not_pass(LimitedText& text, const std::vector<ReportedScenario>& scenarios) {
  bool any = false;
  for (const ReportedScenario& scenario : scenarios) {
    for (const ReportedCase& one : scenario.cases) {
      if (one.end == CaseEnd::passed) continue;
      if (!any) text.add("| | assertion | why | where |\n|---|---|---|---|\n");
      any = true;
      text.add(fmt::format("| **{}** | {} | {} | {} |\n", markdown_text(one.type),
                           markdown_text(one.title), markdown_text(one.message),
                           markdown_text(place_in_words(one.place))));
    }
  }
  if (any) text.add("\n");
}

void append_summary_list(std::string& text, std::string_view title,
                         const std::vector<std::string>& items) {
  if (items.empty()) return;
  append(text, "{}\n\n", title);
  for (const std::string& item : items) append(text, "- {}\n", markdown_text(item));
  text += '\n';
}

// Returns lines such as "sync: step (baseline); none (fix, control)".
std::vector<std::string> step_lines(const std::vector<ReportedThing>& steps) {
  std::vector<std::string> lines;
  for (const ReportedThing& thing : steps) {
    std::vector<std::string> groups;
    for (const ReportedThing::Alike& alike : thing.groups) {
      groups.push_back(thing.differs() ? fmt::format("{} ({})", alike.words, alike.variants)
                                       : alike.words);
    }
    lines.push_back(fmt::format("{}: {}", thing.thing, fmt::join(groups, "; ")));
  }
  return lines;
}

std::string summary_again(const std::string& command) {
  if (command.empty()) return "";
  return fmt::format("again: <code>{}</code>\n\n", markdown_text(command));
}

std::string summary_details(const ReportedScenario& scenario) {
  const ReportedVerdict& decided = *scenario.decided;
  std::string text = fmt::format("<details><summary>{}: {}</summary>\n\n",
                                 markdown_text(scenario.name), markdown_text(scenario.ended));
  append(text, "{}, {}\n\n", markdown_text(decided.verdict.claim), markdown_text(decided.where));
  append_summary_list(text, "Step", step_lines(decided.steps));
  std::vector<std::string> assertions;
  for (const ReportedAssertion& assertion : decided.assertions) {
    assertions.push_back(fmt::format("{}: {}: {}: {}", assertion.name, in_words(assertion.outcome),
                                     assertion.text, assertion.reason));
  }
  append_summary_list(text, "Assertions", assertions);
  if (decided.mechanism) {
    std::vector<std::string> mechanism;
    for (const auto& variant : decided.mechanism->variants)
      mechanism.push_back(variant.variant + ": " + variant.diagnosis);
    std::ranges::copy(decided.mechanism->separations, std::back_inserter(mechanism));
    append_summary_list(text, "Mechanism", mechanism);
  }
  append_summary_list(text, "Environment", decided.verdict.environment);
  append_summary_list(text, "Notes", decided.verdict.notes);
  return text + summary_again(scenario.again) + "</details>\n\n";
}

std::string summary_table(const std::vector<ReportedScenario>& scenarios) {
  std::string text = fmt::format(
      "<details><summary>All {} scenarios</summary>\n\n"
      "| scenario | outcome | rounds | seconds |\n|---|---|---|---|\n",
      scenarios.size());
  for (const ReportedScenario& scenario : scenarios) {
    const Verdict* verdict = scenario.decided == nullptr ? nullptr : &scenario.decided->verdict;
    append(text, "| {} | {} | {} | {:.1f} |\n", markdown_text(scenario.name),
           markdown_text(scenario.ended), verdict == nullptr ? 0 : verdict->rounds,
           verdict == nullptr ? 0.0 : seconds(verdict->wall_time));
  }
  return text + "\n</details>\n\n";
}

std::string summary_of(const ReportedSweep& sweep) {
  std::string text = fmt::format("### Sweep of {}\n\n", markdown_text(sweep.name));
  for (const std::vector<std::string>& row : sweep.table) {
    for (const std::string& cell : row) append(text, "| {} ", markdown_text(cell));
    text += "|\n";
    if (&row != &sweep.table.front()) continue;
    for (std::size_t column = 0; column < row.size(); ++column) text += "|---";
    text += "|\n";
  }
  text += '\n';
  append_summary_list(text, "Where they cross:", sweep.crossings);
  return text;
}

}  // namespace

std::string summary_markdown(const Report& run, std::size_t most_bytes) {
  const std::vector<ReportedScenario>& scenarios = run.scenarios;
  LimitedText text(most_bytes);
  text.add(summary_headline(run));
  add_what_did_not_pass(text, scenarios);
  for (const ReportedScenario& scenario : scenarios) {
    if (scenario.decided != nullptr && scenario.end != CaseEnd::passed)
      text.add(summary_details(scenario));
  }
  for (const ReportedSweep& sweep : run.sweeps) text.add(summary_of(sweep));
  text.add(summary_table(scenarios));
  text.add(fmt::format("stepgate {}, scenarios of commit {}, on {}, {}, seed {:016x}\n",
                       markdown_text(run.run.stepgate), markdown_text(run.run.commit),
                       markdown_text(run.run.host), markdown_text(run.run.date), run.run.seed));
  if (const std::string again = summary_again(command_again(run)); !again.empty())
    text.add("\n" + again);
  return text.text();
}

}  // namespace stepgate
