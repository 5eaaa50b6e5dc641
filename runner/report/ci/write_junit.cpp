// SPDX-License-Identifier: MIT
#include "report/ci/write_junit.h"

#include <fmt/format.h>
#include <fmt/ostream.h>

#include <ostream>

#include "base/seconds.h"
#include "base/text/visible_text.h"
#include "judge/verdict/words.h"
#include "report/picture/svg.h"

namespace stepgate {
namespace {

std::string junit_text(std::string_view text) {  // visible as it is; line ends would be spaces
  return xml_text(one_line(text));
}

std::string junit_counts(std::span<const ReportedScenario> scenarios, double time) {
  std::size_t tests = 0;
  for (const ReportedScenario& scenario : scenarios) tests += scenario.cases.size();
  return fmt::format(R"(tests="{}" failures="{}" errors="{}" skipped="{}" time="{:.3f}")", tests,
                     count_of(scenarios, CaseEnd::failed), count_of(scenarios, CaseEnd::error),
                     count_of(scenarios, CaseEnd::skipped), time);
}

double junit_time(const ReportedScenario& scenario) {
  return scenario.verdict == nullptr ? 0 : seconds(scenario.verdict->wall_time);
}

void write_case_end(std::ostream& out, const ReportedCase& one) {
  const std::string message = junit_text(one.message);
  switch (one.end) {
    case CaseEnd::passed:
      fmt::print(out, "      <system-out>{}</system-out>\n", message);
      return;
    case CaseEnd::failed:
      fmt::print(out, "      <failure type=\"{0}\" message=\"{1}\">{1}</failure>\n",
                 junit_text(one.type), message);
      return;
    case CaseEnd::error:
      fmt::print(out, "      <error type=\"{0}\" message=\"{1}\">{1}</error>\n",
                 junit_text(one.type), message);
      return;
    case CaseEnd::skipped:
      fmt::print(out, "      <skipped type=\"{0}\" message=\"{1}\">{1}</skipped>\n",
                 junit_text(one.type), message);
      return;
  }
}

void write_test_case(std::ostream& out, const ReportedScenario& scenario, const ReportedCase& one) {
  fmt::print(out, "    <testcase classname=\"run.{}\" name=\"{}\"", junit_text(scenario.name),
             junit_text(one.name));
  if (!one.place.file.empty()) fmt::print(out, " file=\"{}\"", junit_text(one.place.file));
  if (one.place.line > 0) fmt::print(out, " line=\"{}\"", one.place.line);
  fmt::print(out, " time=\"{:.3f}\">\n",
             junit_time(scenario) / static_cast<double>(scenario.cases.size()));
  write_case_end(out, one);
  out << "    </testcase>\n";
}

void write_suite_property(std::ostream& out, std::string_view name, std::string_view value) {
  fmt::print(out, "      <property name=\"{}\" value=\"{}\"/>\n", name, junit_text(value));
}

void write_suite_properties(std::ostream& out, const ReportedCases& run,
                            const ReportedScenario& scenario) {
  out << "    <properties>\n";
  write_suite_property(out, "stepgate", run.run.stepgate);
  write_suite_property(out, "commit", run.run.commit);
  write_suite_property(out, "seed", fmt::format("{:016x}", run.run.seed));
  if (scenario.verdict != nullptr) {
    const Verdict& verdict = *scenario.verdict;
    write_suite_property(out, "claim", verdict.claim);
    write_suite_property(out, "outcome", verdict.broken ? "broken" : in_words(verdict.outcome));
    write_suite_property(
        out, "device",
        verdict.planned_only ? "none: decided by its plans" : in_words(verdict.device));
  }
  out << "    </properties>\n";
}

}  // namespace

void write_junit(std::ostream& out, const ReportedCases& run) {
  const std::vector<ReportedScenario>& scenarios = run.scenarios;
  double time = 0;
  for (const ReportedScenario& scenario : scenarios) time += junit_time(scenario);
  // JUnit's timestamps are UTC and have no zone.
  const std::string timestamp = junit_text(run.run.date.substr(0, run.run.date.find('Z')));
  out << "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n";
  fmt::print(out, "<testsuites name=\"stepgate{}\" {} timestamp=\"{}\">\n",
             run.simulated ? ", SIMULATED: nothing was measured" : "",
             junit_counts(scenarios, time), timestamp);
  for (const ReportedScenario& scenario : scenarios) {
    fmt::print(out, "  <testsuite name=\"{}\" {} timestamp=\"{}\" hostname=\"{}\">\n",
               junit_text(scenario.name), junit_counts({&scenario, 1}, junit_time(scenario)),
               timestamp, junit_text(run.run.host));
    write_suite_properties(out, run, scenario);
    for (const ReportedCase& one : scenario.cases) write_test_case(out, scenario, one);
    out << "  </testsuite>\n";
  }
  out << "</testsuites>\n";
}

}  // namespace stepgate
