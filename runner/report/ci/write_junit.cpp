// SPDX-License-Identifier: MIT
#include <fmt/format.h>
#include <fmt/ostream.h>

#include <ostream>

#include "base/seconds.h"
#include "report/command_again.h"
#include "report/picture/svg.h"
#include "report/writers.h"

namespace stepgate {
namespace {

std::string junit_counts(const CaseCounts& counts, double time) {
  return fmt::format(R"(tests="{}" failures="{}" errors="{}" skipped="{}" time="{:.3f}")",
                     counts.all(), counts[CaseEnd::failed], counts[CaseEnd::error],
                     counts[CaseEnd::skipped], time);
}

double junit_time(const ReportedScenario& scenario) {
  return scenario.decided == nullptr ? 0 : seconds(scenario.decided->verdict.wall_time);
}

void write_case_end(std::ostream& out, const ReportedCase& one, const std::string& again) {
  const bool says_again = one.end != CaseEnd::passed && !again.empty();
  const std::string message =
      xml_text(says_again ? one.message + "; " + again_in_words(again) : one.message);
  switch (one.end) {
    case CaseEnd::passed:
      fmt::print(out, "      <system-out>{}</system-out>\n", message);
      return;
    case CaseEnd::failed:
      fmt::print(out, "      <failure type=\"{0}\" message=\"{1}\">{1}</failure>\n",
                 xml_text(one.type), message);
      return;
    case CaseEnd::error:
      fmt::print(out, "      <error type=\"{0}\" message=\"{1}\">{1}</error>\n", xml_text(one.type),
                 message);
      return;
    case CaseEnd::skipped:
      fmt::print(out, "      <skipped type=\"{0}\" message=\"{1}\">{1}</skipped>\n",
                 xml_text(one.type), message);
      return;
  }
}

void write_test_case(std::ostream& out, const ReportedScenario& scenario, const ReportedCase& one) {
  fmt::print(out, "    <testcase classname=\"run.{}\" name=\"{}\"", xml_text(scenario.name),
             xml_text(one.name));
  if (!one.place.file.empty()) fmt::print(out, " file=\"{}\"", xml_text(one.place.file));
  if (one.place.line > 0) fmt::print(out, " line=\"{}\"", one.place.line);
  fmt::print(out, " time=\"{:.3f}\">\n",
             junit_time(scenario) / static_cast<double>(scenario.cases.size()));
  write_case_end(out, one, scenario.again);
  out << "    </testcase>\n";
}

void write_suite_property(std::ostream& out, std::string_view name, std::string_view value) {
  fmt::print(out, "      <property name=\"{}\" value=\"{}\"/>\n", name, xml_text(value));
}

void write_suite_properties(std::ostream& out, const Report& run,
                            const ReportedScenario& scenario) {
  out << "    <properties>\n";
  write_suite_property(out, "stepgate", run.run.stepgate);
  write_suite_property(out, "commit", run.run.commit);
  write_suite_property(out, "seed", fmt::format("{:016x}", run.run.seed));
  if (scenario.decided != nullptr) {
    const ReportedVerdict& decided = *scenario.decided;
    write_suite_property(out, "claim", decided.verdict.claim);
    if (const auto& point = decided.verdict.point)
      write_suite_property(out, xml_text(point->knob), point->value);
    write_suite_property(out, "outcome", scenario.ended);
    write_suite_property(out, "device", decided.device.empty() ? decided.where : decided.device);
  }
  out << "    </properties>\n";
}

}  // namespace

void write_junit(std::ostream& out, const Report& run) {
  double time = 0;
  for (const ReportedScenario& scenario : run.scenarios) time += junit_time(scenario);
  // JUnit's timestamps are UTC and have no zone.
  const std::string timestamp = xml_text(run.run.date.substr(0, run.run.date.find('Z')));
  out << "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n";
  fmt::print(out, "<testsuites name=\"stepgate{}\" {} timestamp=\"{}\">\n",
             run.simulated ? ", SIMULATED: nothing was measured" : "",
             junit_counts(run.counts, time), timestamp);
  for (const ReportedScenario& scenario : run.scenarios) {
    fmt::print(out, "  <testsuite name=\"{}\" {} timestamp=\"{}\" hostname=\"{}\">\n",
               xml_text(scenario.name), junit_counts(scenario.counts, junit_time(scenario)),
               timestamp, xml_text(run.run.host));
    write_suite_properties(out, run, scenario);
    for (const ReportedCase& one : scenario.cases) write_test_case(out, scenario, one);
    out << "  </testsuite>\n";
  }
  out << "</testsuites>\n";
}

}  // namespace stepgate
