// SPDX-License-Identifier: MIT
// Tests the content of JUnit, the summary and annotations, and that text from a file cannot break
// out of its place. tests/cli/ci_reports_test.cpp checks that JUnit is valid XML.
#include <gtest/gtest.h>

#include <chrono>
#include <sstream>

#include "report/testing/reports.h"
#include "report/times.h"
#include "report/writers.h"

namespace stepgate {
namespace {

const std::string hostile =
    "a\n::error file=x::hi ]]> <b> & \"q\" | `c` [l](u) \x1b[31m\xff @you 100%";

Verdict verdict_named(const std::string& name, std::vector<Outcome> outcomes) {
  Verdict verdict;
  verdict.scenario = name;
  verdict.claim = "it is fast";
  verdict.device.kind = DeviceKind::cuda;
  verdict.device.name = "NVIDIA H200";
  verdict.wall_time = std::chrono::seconds(3);
  int number = 0;
  for (const Outcome outcome : outcomes) {
    AssertionVerdict assertion;
    assertion.name = "line" + std::to_string(++number);
    assertion.text = "a.x >= 1 * b.x";
    assertion.reason = "1.31x in a typical round";
    assertion.place = {"scenarios/" + name + ".toml", 10 + number, 3};
    assertion.outcome = outcome;
    verdict.assertions.push_back(assertion);
  }
  verdict.outcome = worst(verdict.assertions);
  return verdict;
}

std::string junit(const RunSoFar& run) {
  std::ostringstream out;
  write_junit(out, report_of(run));
  return out.str();
}

std::string annotations(const RunSoFar& run) {
  std::ostringstream out;
  write_annotations(out, report_of(run));
  return out.str();
}

bool has(const std::string& text, const std::string& words) {
  return text.find(words) != std::string::npos;
}

TEST(Report, EndsEveryAssertionAsItsOutcomeAndThePolicySay) {
  const std::vector<Verdict> verdicts{
      verdict_named("a", {Outcome::passes, Outcome::fails, Outcome::undecided, Outcome::skipped,
                          Outcome::no_baseline, Outcome::not_comparable})};
  const auto ends = [&](UndecidedPolicy policy) {
    std::vector<CaseEnd> all;
    const std::vector<ReportedScenario> scenarios = report_of(run_of(verdicts, policy)).scenarios;
    for (const ReportedCase& one : scenarios[0].cases) all.push_back(one.end);
    return all;
  };
  using enum CaseEnd;
  EXPECT_EQ(ends(UndecidedPolicy::skip),
            (std::vector{passed, failed, skipped, skipped, error, error}));
  EXPECT_EQ(ends(UndecidedPolicy::fail),
            (std::vector{passed, failed, failed, failed, error, error}));
  EXPECT_EQ(ends(UndecidedPolicy::pass),
            (std::vector{passed, failed, passed, passed, error, error}));
}

TEST(Report, HasACaseForARegimeThatDoesNotHold) {
  std::vector<Verdict> verdicts{verdict_named("a", {Outcome::skipped})};
  verdicts[0].regime = verdict_named("a", {Outcome::fails, Outcome::passes}).assertions;
  const std::vector<ReportedScenario> scenarios = report_of(run_of(verdicts)).scenarios;
  ASSERT_EQ(scenarios[0].cases.size(), 2u);
  EXPECT_EQ(scenarios[0].cases[1].name, "a.regime.line1");
  EXPECT_EQ(scenarios[0].cases[1].end, CaseEnd::skipped);
  EXPECT_TRUE(has(junit(run_of(verdicts)), "the regime does not pass: a.x"));
}

TEST(Report, LetsNothingPassInABrokenRunAndKeepsWhatFails) {
  std::vector<Verdict> verdicts{verdict_named("a", {Outcome::passes, Outcome::fails})};
  verdicts[0].broken = "two variants computed different losses";
  const auto cases = report_of(run_of(verdicts)).scenarios[0].cases;
  EXPECT_EQ(cases[0].end, CaseEnd::error);
  EXPECT_EQ(cases[0].type, "broken");
  EXPECT_TRUE(has(cases[0].message, "different losses"));
  EXPECT_EQ(cases[1].end, CaseEnd::failed);
}

TEST(Report, LetsNothingPassThatTheRunDidNotGetTo) {
  const std::vector<Verdict> verdicts{verdict_named("a", {Outcome::passes})};
  Scenario reached;
  reached.name = "a";
  Scenario missed;
  missed.name = "b";
  missed.expect.resize(1);
  missed.expect[0].name = "line";
  RunSoFar run = run_of(verdicts);
  run.scenarios = {&reached, &missed};
  run.failures = {{"device", {}, "the device failed: it fell off the bus"}};
  const auto all = report_of(run).scenarios;
  ASSERT_EQ(all.size(), 3U);
  EXPECT_EQ(all[0].cases[0].name, "stepgate.device");
  EXPECT_EQ(all[0].cases[0].end, CaseEnd::error);
  EXPECT_EQ(all[1].cases[0].end, CaseEnd::passed);
  EXPECT_EQ(all[2].cases[0].end, CaseEnd::error);
  EXPECT_EQ(all[2].cases[0].type, "not run");
  // One cause is reported once.
  EXPECT_EQ(annotations(run),
            "::error title=stepgate.device::the device failed: it fell off the bus\n");
}

TEST(Report, KeepsWhatFailedBeforeTheRunEndedEarly) {
  for (const auto& [type, code] : {std::pair{"request", ExitCode::wrong_request},
                                   {"device", ExitCode::device_failed},
                                   {"not gated", ExitCode::not_gated}}) {
    for (const Outcome outcome : {Outcome::fails, Outcome::passes}) {
      RunSoFar run = run_of({verdict_named("a", {outcome})});
      run.failures = {{type, {}, "why it ended"}};
      run.ended = true;
      EXPECT_EQ(report_of(run).code, outcome == Outcome::fails ? ExitCode::fails : code) << type;
    }
  }
}

TEST(Report, FailsWhatOnlyTheWholeSuiteRefutes) {
  const std::vector<Verdict> verdicts{verdict_named("a", {Outcome::undecided, Outcome::undecided})};
  SuiteVerdict suite;
  suite.failed = true;
  RunSoFar run = run_of(verdicts, UndecidedPolicy::pass);
  run.suite = suite;
  const Report report = report_of(run);
  const auto& whole = report.scenarios;
  EXPECT_EQ(whole[0].cases[0].name, "stepgate.suite");
  EXPECT_EQ(whole[0].cases[0].end, CaseEnd::failed);
  EXPECT_EQ(report.counts[CaseEnd::passed], 2U);
  run.suite->failed_among_others = {"a.line2"};
  const auto one = report_of(run).scenarios;
  ASSERT_EQ(one.size(), 1U);
  EXPECT_EQ(one[0].cases[0].end, CaseEnd::passed);
  EXPECT_EQ(one[0].cases[1].end, CaseEnd::failed);
}

TEST(Report, TellsNamesakesApart) {
  const std::vector<Verdict> verdicts{verdict_named("a", {Outcome::passes}),
                                      verdict_named("a", {Outcome::fails})};
  const auto all = report_of(run_of(verdicts)).scenarios;
  EXPECT_EQ(all[0].cases[0].name, "a.line1");
  EXPECT_EQ(all[1].cases[0].name, "a.line1 (2)");
}

TEST(WriteJunit, HasTheShapeThatItsReadersAgreeOn) {
  const std::vector<Verdict> verdicts{
      verdict_named("a", {Outcome::passes, Outcome::fails, Outcome::undecided})};
  const std::string text = junit(run_of(verdicts));
  EXPECT_TRUE(has(text, R"(<testsuite name="a" tests="3" failures="1" errors="0" skipped="1")"
                        R"( time="3.000" timestamp="2026-11-22T10:00:00" hostname="runner-7">)"))
      << text;
  EXPECT_TRUE(has(text, R"(<testcase classname="run.a" name="a.line2" file="scenarios/a.toml")"
                        R"( line="12" time="1.000">)"))
      << text;
  const std::string message = "a.x &gt;= 1 * b.x: 1.31x in a typical round";
  EXPECT_TRUE(
      has(text, "<failure type=\"fails\" message=\"" + message + "\">" + message + "</failure>"))
      << text;
  EXPECT_TRUE(has(text, "<skipped type=\"undecided\" message=\"" + message + "\">")) << text;
  EXPECT_FALSE(has(text, "SIMULATED"));
}

TEST(WriteJunit, SaysThatNothingWasMeasured) {
  std::vector<Verdict> verdicts{verdict_named("a", {Outcome::passes})};
  verdicts[0].device.kind = DeviceKind::simulated;
  EXPECT_TRUE(has(junit(run_of(verdicts)), "<testsuites name=\"stepgate, SIMULATED"));
  verdicts[0].planned_only = true;  // no device is used, so nothing is missing
  EXPECT_FALSE(has(junit(run_of(verdicts)), "SIMULATED"));
}

TEST(WriteJunit, KeepsForeignTextInItsPlace) {
  std::vector<Verdict> verdicts{verdict_named("a", {Outcome::fails})};
  verdicts[0].claim = hostile;
  verdicts[0].assertions[0].reason = hostile;
  verdicts[0].assertions[0].place.file = hostile;
  const std::string text = junit(run_of(verdicts));
  EXPECT_FALSE(has(text, "]]>")) << text;
  EXPECT_FALSE(has(text, "<b>")) << text;
  EXPECT_FALSE(has(text, "\n::error")) << text;
  EXPECT_EQ(text.find_first_of("\x1b\xff"), std::string::npos) << text;
  EXPECT_TRUE(has(text, "a\\n::error file=x::hi ]]&gt; &lt;b&gt; &amp; &quot;q&quot;")) << text;
}

TEST(Annotations, MarkTheLineOfWhatDoesNotHoldAndOfNothingElse) {
  const std::vector<Verdict> verdicts{verdict_named(
      "a", {Outcome::passes, Outcome::fails, Outcome::undecided, Outcome::no_baseline})};
  EXPECT_EQ(annotations(run_of(verdicts)),
            "::error file=scenarios/a.toml,line=12,title=a.line2 fails::a.x >= 1 * b.x: 1.31x in "
            "a typical round\n"
            "::error file=scenarios/a.toml,line=14,title=a.line4 not gated::a.x >= 1 * b.x: 1.31x "
            "in a typical round\n"
            "::warning file=scenarios/a.toml,line=13,title=a.line3 undecided::a.x >= 1 * b.x: "
            "1.31x in a typical round\n");
}

TEST(Annotations, AreAtMostNineOfAKindAndTheNumberOfTheRest) {
  const std::vector<Verdict> nine{verdict_named("a", std::vector(9, Outcome::fails))};
  EXPECT_EQ(times(annotations(run_of(nine)), "::error "), 9);
  const std::vector<Verdict> many{verdict_named("a", std::vector(12, Outcome::fails))};
  const std::string text = annotations(run_of(many));
  EXPECT_EQ(times(text, "\n"), 10) << text;
  EXPECT_TRUE(has(text, "::error title=stepgate::and 3 more\n")) << text;
}

TEST(Annotations, EncodeWhatTheRunnerDecodesAndShowTheRest) {
  std::vector<Verdict> verdicts{verdict_named("a", {Outcome::fails})};
  verdicts[0].assertions[0].place.file = "50%,a:b\n.toml";
  verdicts[0].assertions[0].text = "t";
  verdicts[0].assertions[0].reason = "100%, a:b\r\n::error::x\x1b";
  EXPECT_EQ(annotations(run_of(verdicts)),
            "::error file=50%25%2Ca%3Ab%0A.toml,line=11,title=a.line1 fails::t: 100%25, "
            "a:b\\r%0A\\x3a:error::x\\x1b\n");
}

TEST(Summary, BeginsWithWhatDoesNotHold) {
  const std::vector<Verdict> verdicts{
      verdict_named("good", {Outcome::passes}),
      verdict_named("bad", {Outcome::fails, Outcome::undecided, Outcome::no_baseline})};
  const std::string text = summary_markdown(report_of(run_of(verdicts)));
  EXPECT_EQ(text.find("## stepgate: 1 failed, 1 could not be tried, 1 left open, 1 of 4 assertions "
                      "passed\n"),
            0U)
      << text;
  EXPECT_TRUE(has(text,
                  "| **fails** | bad.line1 | a.x &#62;= 1 &#42; b.x&#58; 1.31x in a "
                  "typical round | scenarios/bad.toml&#58;11 |"))
      << text;
  EXPECT_EQ(times(text, "<details>"), 2) << text;  // one for `bad` and one for the table of all
  EXPECT_EQ(times(text, "</details>"), 2) << text;
  EXPECT_TRUE(has(text, "scenarios of commit 0123abc")) << text;
}

TEST(Summary, SaysThatNothingWasMeasured) {
  std::vector<Verdict> verdicts{verdict_named("a", {Outcome::passes})};
  verdicts[0].device.kind = DeviceKind::simulated;
  EXPECT_EQ(summary_markdown(report_of(run_of(verdicts))).find("## stepgate: SIMULATED: 1 of 1"),
            0U);
}

TEST(Summary, SaysOfWhatDoesNotHoldWhereItsVariantsDiffer) {
  std::vector<Variant> variants(8);
  for (std::size_t at = 0; at < variants.size(); ++at) variants[at].name = "v" + std::to_string(at);
  variants[0].knobs.sync.where = SyncWhere::step;
  std::vector<Verdict> verdicts{verdict_named("a", {Outcome::fails})};
  verdicts[0].steps = described_steps(variants);
  const std::string text = summary_markdown(report_of(run_of(verdicts)));
  EXPECT_TRUE(has(text, "- batch&#58; size 64\n")) << text;
  EXPECT_TRUE(has(
      text, "- sync&#58; step &#40;v0&#41;; none &#40;v1, v2, v3, v4, v5, v6 and 1 more&#41;\n"))
      << text;
  verdicts[0].outcome = verdicts[0].assertions[0].outcome = Outcome::passes;
  EXPECT_FALSE(has(summary_markdown(report_of(run_of(verdicts))), "- sync"));
}

TEST(Summary, KeepsForeignTextInItsCell) {
  std::vector<Verdict> verdicts{verdict_named("a", {Outcome::fails})};
  verdicts[0].claim = hostile;
  verdicts[0].assertions[0].reason = hostile;
  verdicts[0].environment = {hostile};
  const std::string text = summary_markdown(report_of(run_of(verdicts)));
  for (const char* markup : {"<b>", "`", "[l]", "\n::error", "@you", "\x1b"})
    EXPECT_FALSE(has(text, markup)) << markup << text;
  EXPECT_TRUE(has(text, "&#124;")) << text;
}

TEST(Summary, StaysBelowItsLimitAndSaysWhatIsMissing) {
  std::vector<Verdict> verdicts;
  for (int index = 0; index < 400; ++index) {
    verdicts.push_back(verdict_named("a" + std::to_string(index), {Outcome::fails}));
    verdicts.back().assertions[0].reason = std::string(10'000, 'x');
  }
  const std::string text = summary_markdown(report_of(run_of(verdicts)));
  EXPECT_LE(text.size(), most_summary_bytes);
  EXPECT_GT(text.size(), most_summary_bytes / 2);
  EXPECT_TRUE(has(text, " more parts found no room here.\n"));
  EXPECT_LE(summary_markdown(report_of(run_of(verdicts)), 300).size(), 300U);
}

}  // namespace
}  // namespace stepgate
