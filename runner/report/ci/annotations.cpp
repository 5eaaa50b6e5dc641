// SPDX-License-Identifier: MIT
#include <fmt/format.h>
#include <fmt/ostream.h>

#include <ostream>
#include <utility>

#include "base/text/visible_text.h"
#include "report/writers.h"

namespace stepgate {
namespace {

constexpr std::size_t most_of_a_kind = 9;

// Percent-encodes `letters`, which must be exactly those that GitHub's runner decodes. Properties
// need more letters than data.
std::string percent_encoded(std::string_view text, std::string_view letters) {
  constexpr std::size_t most_bytes = 4000;  // GitHub allows 64 kB
  std::string safe;
  for (const char letter : beginning_of(visible_lines(text), most_bytes)) {
    if (letters.find(letter) == std::string_view::npos) {
      safe += letter;
    } else {
      safe += fmt::format("%{:02X}", static_cast<int>(letter));
    }
  }
  return safe;
}

std::string annotation_data(std::string_view text) {
  return percent_encoded(text, "%\r\n");
}

std::string annotation_property(std::string_view text) {
  return percent_encoded(text, "%\r\n:,");
}

void write_annotation(std::ostream& out, std::string_view command, const ReportedCase& one,
                      std::string_view simulated) {
  fmt::print(out, "::{} ", command);
  if (!one.place.file.empty()) fmt::print(out, "file={},", annotation_property(one.place.file));
  if (one.place.line > 0) fmt::print(out, "line={},", one.place.line);
  fmt::print(out, "title={}::{}\n",
             annotation_property(one.title.ends_with("." + one.type)  // the run's own
                                     ? one.title
                                     : fmt::format("{} {}{}", one.title, one.type, simulated)),
             annotation_data(one.message));
}

// A case that the run did not reach is not reported, since the cause that ended the run is reported
// once.
bool is_consequence(const Report& run, const ReportedCase& one) {
  return one.type == not_run && run.ended_early;
}

void write_kind_of_annotation(std::ostream& out, std::string_view command, const Report& run,
                              bool (*belongs)(CaseEnd)) {
  const std::string_view simulated = run.simulated ? " (SIMULATED)" : "";
  std::size_t written = 0;
  std::size_t more = 0;
  for (const ReportedScenario& scenario : run.scenarios) {
    for (const ReportedCase& one : scenario.cases) {
      if (!belongs(one.end) || is_consequence(run, one)) continue;
      if (written == most_of_a_kind) {
        ++more;
        continue;
      }
      write_annotation(out, command, one, simulated);
      ++written;
    }
  }
  if (more > 0) fmt::print(out, "::{} title=stepgate::and {} more\n", command, more);
}

}  // namespace

std::map<std::string, Annotations> annotation_choices() {
  return {{"none", Annotations::none}, {"github", Annotations::github}};
}

void write_annotations(std::ostream& out, const Report& run) {
  write_kind_of_annotation(out, "error", run, [](CaseEnd end) {
    return end == CaseEnd::failed || end == CaseEnd::error;
  });
  write_kind_of_annotation(out, "warning", run,
                           [](CaseEnd end) { return end == CaseEnd::skipped; });
}

std::string stop_commands(const std::string& token) {
  return "::stop-commands::" + token + "\n";
}

std::string resume_commands(const std::string& token) {
  return "::" + token + "::\n";
}

}  // namespace stepgate
