// SPDX-License-Identifier: MIT
#include "report/ci/write_summary.h"

#include <fmt/format.h>

#include <array>
#include <vector>

#include "base/seconds.h"
#include "base/text/visible_text.h"
#include "judge/verdict/words.h"
#include "report/append.h"
#include "report/text/print_step.h"

namespace stepgate {
namespace {

// Whatever could be markup is an entity, also within a cell of a table. A scenario file may be one
// long claim, which nobody reads here.
std::string markdown_text(std::string_view text) {
  constexpr std::size_t most_bytes = 4000;
  constexpr std::string_view harmless = " ,.;=+-/'";  // but at the beginning of a line
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

// Grows by whole parts up to a size, and counts what found no room.
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

std::string shown_outcome(const ReportedScenario& scenario) {
  if (scenario.verdict == nullptr) {
    for (const ReportedCase& one : scenario.cases)
      if (one.end != CaseEnd::passed) return one.type;
    return scenario.cases.empty() ? std::string(not_run) : "passed";
  }
  if (scenario.verdict->not_run) return std::string(not_run);
  if (scenario.verdict->failed) return "device failed";
  if (scenario.verdict->broken) return "broken";
  return std::string(in_words(scenario.verdict->outcome));
}

bool every_case_passed(const ReportedScenario& scenario) {
  return count_of({&scenario, 1}, CaseEnd::passed) == scenario.cases.size() &&
         (scenario.verdict == nullptr || !scenario.verdict->broken);
}

std::string summary_headline(const ReportedCases& run,
                             const std::vector<ReportedScenario>& scenarios) {
  struct Tally {
    CaseEnd end;
    const char* words;
  };
  constexpr std::array tallies{Tally{CaseEnd::failed, "failed"},
                               Tally{CaseEnd::error, "could not be tried"},
                               Tally{CaseEnd::skipped, "left open"}};
  std::string text = "## stepgate: ";
  if (run.simulated) text += "SIMULATED: ";
  std::string wrong;
  for (const Tally& tally : tallies) {
    const std::size_t count = count_of(scenarios, tally.end);
    if (count > 0) append(wrong, "{}{} {}", wrong.empty() ? "" : ", ", count, tally.words);
  }
  const std::size_t passed = count_of(scenarios, CaseEnd::passed);
  append(text, "{}{} of {} assertions passed\n\n", wrong.empty() ? "" : wrong + ", ", passed,
         passed + count_of(scenarios, CaseEnd::failed) + count_of(scenarios, CaseEnd::error) +
             count_of(scenarios, CaseEnd::skipped));
  if (run.simulated) text += "Times are computed: **nothing was measured.**\n\n";
  return text;
}

// A row for every case that did not pass.
void add_what_did_not_pass(LimitedText& text, const std::vector<ReportedScenario>& scenarios) {
  bool any = false;
  for (const ReportedScenario& scenario : scenarios) {
    for (const ReportedCase& one : scenario.cases) {
      if (one.end == CaseEnd::passed) continue;
      if (!any) text.add("| | assertion | why | where |\n|---|---|---|---|\n");
      any = true;
      std::string place = markdown_text(one.place.file);
      if (one.place.line > 0) append(place, "&#58;{}", one.place.line);
      text.add(fmt::format("| **{}** | {} | {} | {} |\n", markdown_text(one.type),
                           markdown_text(one.title), markdown_text(one.message), place));
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

std::string summary_details(const Verdict& verdict, const std::string& outcome) {
  std::string text = fmt::format("<details><summary>{}: {}</summary>\n\n",
                                 markdown_text(verdict.scenario), markdown_text(outcome));
  append(text, "{}, {}\n\n", markdown_text(verdict.claim),
         verdict.planned_only ? "by its plans" : "on " + markdown_text(in_words(verdict.device)));
  append_summary_list(text, "Step", steps_in_words(verdict.steps));
  std::vector<std::string> assertions;
  for (const AssertionVerdict& assertion : verdict.assertions) {
    assertions.push_back(fmt::format("{}: {}: {}: {}", assertion.name, in_words(assertion.outcome),
                                     assertion.text, assertion.reason));
  }
  append_summary_list(text, "Assertions", assertions);
  if (verdict.mechanism) {
    std::vector<std::string> mechanism;
    for (const VariantMechanism& variant : verdict.mechanism->variants)
      mechanism.push_back(variant.variant + ": " + variant.diagnosis);
    for (const Separation& separation : verdict.mechanism->separations)
      mechanism.push_back(separation.summary);
    append_summary_list(text, "Mechanism", mechanism);
  }
  append_summary_list(text, "Environment", verdict.environment);
  append_summary_list(text, "Notes", verdict.notes);
  return text + "</details>\n\n";
}

std::string summary_table(const std::vector<ReportedScenario>& scenarios) {
  std::string text = fmt::format(
      "<details><summary>All {} scenarios</summary>\n\n"
      "| scenario | outcome | rounds | seconds |\n|---|---|---|---|\n",
      scenarios.size());
  for (const ReportedScenario& scenario : scenarios) {
    const Verdict* verdict = scenario.verdict;
    append(text, "| {} | {} | {} | {:.1f} |\n", markdown_text(scenario.name),
           markdown_text(shown_outcome(scenario)), verdict == nullptr ? 0 : verdict->rounds,
           verdict == nullptr ? 0.0 : seconds(verdict->wall_time));
  }
  return text + "\n</details>\n\n";
}

}  // namespace

std::string summary_markdown(const ReportedCases& run, std::size_t most_bytes) {
  const std::vector<ReportedScenario>& scenarios = run.scenarios;
  LimitedText text(most_bytes);
  text.add(summary_headline(run, scenarios));
  add_what_did_not_pass(text, scenarios);
  for (const ReportedScenario& scenario : scenarios) {
    if (scenario.verdict == nullptr || every_case_passed(scenario)) continue;
    text.add(summary_details(*scenario.verdict, shown_outcome(scenario)));
  }
  text.add(summary_table(scenarios));
  text.add(fmt::format("stepgate {}, scenarios of commit {}, on {}, {}, seed {:016x}\n",
                       markdown_text(run.run.stepgate), markdown_text(run.run.commit),
                       markdown_text(run.run.host), markdown_text(run.run.date), run.run.seed));
  return text.text();
}

}  // namespace stepgate
