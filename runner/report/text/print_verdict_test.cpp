// SPDX-License-Identifier: MIT
// Tests printed reports against the golden files in this folder. With STEPGATE_UPDATE_GOLDEN=1 in
// the environment the files are rewritten instead; review the difference.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <sstream>

#include "judge/testing/fake_scenario.h"
#include "report/testing/reports.h"
#include "report/text/print_list.h"
#include "report/times.h"
#include "report/writers.h"

namespace stepgate {
namespace {

using namespace std::chrono_literals;

void expect_reviewed(const std::string& name, const std::string& printed) {
  const std::string path = STEPGATE_SOURCE_DIR "/runner/report/golden/" + name + ".txt";
  if (std::getenv("STEPGATE_UPDATE_GOLDEN")) {
    std::ofstream(path) << printed;
    return;
  }
  std::ifstream file(path);
  ASSERT_TRUE(file) << path;
  std::ostringstream expected;
  expected << file.rdbuf();
  EXPECT_EQ(printed, expected.str());
}

std::string printed(const Verdict& verdict, Style style = Style::plain) {
  std::ostringstream out;
  print_verdict(out, reported(verdict), style);
  return out.str();
}

Expectation with_text(Expectation assertion, const std::string& name, const std::string& text) {
  assertion.name = name;
  assertion.text = text;
  return assertion;
}

// Returns the verdict on a fix with `fix_microseconds` per step, against a baseline of 3 ms, with
// reproducible noise.
Verdict verdict_of_fix(std::int64_t fix_microseconds) {
  const Scenario scenario = scenario_of(
      {with_text(fix_against_baseline(Metric::samples_per_s, Relation::at_least, 1.05), "pays",
                 "fix.samples_per_s >= 1.05 * baseline.samples_per_s"),
       with_text(
           assertion("", {{of("fix", Metric::host_waits_per_step)}}, Relation::equal, {{0.0}}),
           "no_waits", "fix.host_waits_per_step == 0")},
      {with_text(assertion("", {{of("baseline", Metric::host_share)}}, Relation::at_least, {{0.2}}),
                 "host_bound", "baseline.host_share >= 20%")});
  Script script;
  script.step_time = [=](const std::string& variant,
                         std::int64_t step) -> std::chrono::nanoseconds {
    return std::chrono::microseconds(variant == "fix" ? fix_microseconds : 3000) +
           std::chrono::microseconds(step % 7);
  };
  return measure_and_judge(scenario, script, 1).verdict;
}

Verdict on_gpu(Verdict verdict) {
  verdict.device.kind = DeviceKind::cuda;
  verdict.device.name = "NVIDIA H200";
  verdict.device.driver = "580.159";
  return verdict;
}

TEST(PrintVerdict, ShowsAScenarioThatPasses) {
  expect_reviewed("passes", printed(on_gpu(verdict_of_fix(2000))));
}

TEST(PrintVerdict, ShowsAFailedScenarioOnASimulatedDevice) {
  Verdict verdict = verdict_of_fix(3300);
  verdict.device.name = "NVIDIA H200";
  verdict.notes.push_back("the step times were still drifting after 800 steps of warm-up");
  expect_reviewed("failed_simulated", printed(verdict));
}

TEST(PrintVerdict, ShowsTheEnvironmentThatLetsNothingBeDecided) {
  Script script;
  script.step_time = [](const std::string& variant, std::int64_t step) -> std::chrono::nanoseconds {
    return std::chrono::microseconds(variant == "fix" ? 2038 : 2000) +
           std::chrono::nanoseconds(100 * (step % 7));
  };
  script.sm_clock_hertz = [](const std::string& variant) {
    return variant == "fix" ? 1.945e9 : 1.98e9;
  };
  script.environment = [](std::int64_t reading) {
    EnvironmentReading read;
    read.sm_clock_hertz = 1.98e9;
    read.memory_clock_hertz = 3.201e9;
    read.temperature_celsius = 41 + 8.0 * static_cast<double>(reading);
    read.power_watts = 312;
    read.power_limit_watts = 700;
    read.times = {{ClockEvent::hardware_thermal, std::chrono::milliseconds(reading < 6 ? 0 : 12)}};
    read.processes = ComputeProcesses{};
    return read;
  };
  const Scenario scenario =
      scenario_of({with_text(fix_against_baseline(Metric::samples_per_s, Relation::at_least, 0.995),
                             "free", "fix.samples_per_s >= 0.995 * baseline.samples_per_s"),
                   with_text(assertion("", {{of("fix", Metric::host_waits_per_step)}},
                                       Relation::equal, {{0.0}}),
                             "no_waits", "fix.host_waits_per_step == 0")});
  expect_reviewed("environment", printed(on_gpu(measure_and_judge(scenario, script, 1).verdict)));
}

TEST(PrintVerdict, ShowsWhyARunIsBroken) {
  Verdict verdict = on_gpu(verdict_of_fix(2000));
  verdict.broken = "variant 'fix' does not train what 'baseline' trains";
  const std::string text = printed(verdict);
  EXPECT_NE(text.find("scripted: broken: variant 'fix' does not train"), std::string::npos) << text;
  EXPECT_EQ(text.find("scripted: passes"), std::string::npos) << text;
}

TEST(PrintVerdict, ShowsNoTextOfAFileThatATerminalWouldActOn) {
  Verdict verdict = verdict_of_fix(2000);
  for (std::string* text : {&verdict.claim, &verdict.assertions.front().reason}) *text = "\x1b[2Ja";
  verdict.notes = {"\x1b[2Jb"};
  verdict.skipped_because = "\x1b[2Jc\nPASSED";
  const std::string text = printed(verdict);
  EXPECT_EQ(text.find('\x1b'), std::string::npos) << text;
  EXPECT_EQ(text.find("\nPASSED"), std::string::npos) << text;
}

TEST(PrintVerdict, ShowsASkippedScenario) {
  Scenario scenario =
      scenario_of({with_text(fix_against_baseline(Metric::samples_per_s, Relation::at_least, 1.05),
                             "pays", "fix.samples_per_s >= 1.05 * baseline.samples_per_s")});
  DeviceIdentity device;
  device.name = "NVIDIA H200";
  expect_reviewed("skipped",
                  printed(skipped_verdict(scenario, device, "needs 2 copy engines", {})));
}

TEST(PrintVerdict, ColoursOnlyOnATerminalAndKeepsTheColumns) {
  const Verdict verdict = on_gpu(verdict_of_fix(2000));
  EXPECT_EQ(printed(verdict).find('\x1b'), std::string::npos);
  std::string coloured = printed(verdict, Style::terminal);
  ASSERT_NE(coloured.find("\x1b[32mpasses"), std::string::npos);
  for (const std::string escape : {"\x1b[32m", "\x1b[0m"}) {
    for (auto at = coloured.find(escape); at != std::string::npos; at = coloured.find(escape)) {
      coloured.erase(at, escape.size());
    }
  }
  EXPECT_EQ(coloured, printed(verdict));
}

TEST(PrintVerdict, SumsUpASuite) {
  std::vector<Verdict> suite{verdict_of_fix(2000), verdict_of_fix(3300), verdict_of_fix(2000)};
  suite[0].scenario = "pays";
  suite[1].scenario = "costs";
  suite[2].scenario = "lies";
  suite[2].broken = "losses disagree";
  suite.push_back(verdict_of_fix(3300));
  suite[3].scenario = "ends";
  suite[3].failed = "no memory";
  std::ostringstream out;
  RunSoFar run = ended_run(suite);
  run.run.simulated = true;
  print_suite_table(out, report_of(run), Style::plain);
  print_tally(out, report_of(run), Style::plain);
  expect_reviewed("suite", out.str());
}

std::string told(const Verdict& verdict) {
  std::ostringstream out;
  print_outcome(out, reported(verdict), Style::plain);
  return out.str();
}

TEST(PrintVerdict, TellsOneLineOfWhatPassesAndAllOfAnythingElse) {
  Verdict good = on_gpu(verdict_of_fix(2000));
  good.notes.clear();
  EXPECT_EQ(told(good), "scripted: passes after 5 rounds of 2 loads, 0.398 GPU seconds\n");
  good.notes = {"one", "two"};
  EXPECT_EQ(
      told(good),
      "scripted: passes after 5 rounds of 2 loads, 0.398 GPU seconds; 2 notes, which --verbose "
      "tells\n");
  good.notes_told_always = 1;
  EXPECT_EQ(
      told(good),
      "note: one\nscripted: passes after 5 rounds of 2 loads, 0.398 GPU seconds; 1 note, which "
      "--verbose tells\n");
  const Verdict bad = on_gpu(verdict_of_fix(3300));
  EXPECT_EQ(told(bad), "\n" + printed(bad) + "\n");
  for (auto Verdict::*end : {&Verdict::broken, &Verdict::failed}) {
    Verdict ended = good;
    ended.*end = "why";
    EXPECT_EQ(told(ended), "\n" + printed(ended) + "\n");
  }
}

// Even a single line of such a report must not look like a measurement.
TEST(PrintVerdict, SaysInEveryLineThatSumsUpThatItIsSimulated) {
  EXPECT_EQ(told(verdict_of_fix(2000)).find("SIMULATED scripted: passes"), 0U);
  for (const std::string& text : {printed(verdict_of_fix(2000)), printed(verdict_of_fix(3300))})
    EXPECT_NE(text.find("\nSIMULATED scripted: "), std::string::npos) << text;
  EXPECT_EQ(printed(on_gpu(verdict_of_fix(2000))).find("SIMULATED"), std::string::npos);
  const std::vector<Verdict> suite{verdict_of_fix(2000)};
  std::ostringstream out;
  RunSoFar run = ended_run(suite);
  run.run.simulated = true;
  run.run.gated = false;
  print_suite_table(out, report_of(run), Style::plain);
  print_tally(out, report_of(run), Style::plain);
  EXPECT_EQ(out.str(),
            "  passes          scripted  5 rounds  SIMULATED\n"
            "SIMULATED 1 scenario, 1 passes; not gated: nothing was measured\n");
}

TEST(PrintVerdict, CountsOneRoundAsOne) {
  std::vector<Verdict> suite{on_gpu(verdict_of_fix(2000))};
  suite[0].rounds = 1;
  std::ostringstream out;
  print_suite_table(out, report_of(run_of(suite)), Style::plain);
  EXPECT_EQ(out.str(), "  passes          scripted  1 round\n");
}

TEST(PrintVerdict, HeedsNoColor) {
  const int terminal = ::posix_openpt(O_RDWR | O_NOCTTY);
  ASSERT_GE(terminal, 0);
  ::unsetenv("NO_COLOR");
  EXPECT_EQ(style_of(terminal), Style::terminal);
  ::setenv("NO_COLOR", "", 1);
  EXPECT_EQ(style_of(terminal), Style::terminal);
  ::setenv("NO_COLOR", "1", 1);
  EXPECT_EQ(style_of(terminal), Style::plain);
  ::unsetenv("NO_COLOR");
  ::close(terminal);
  const int file = ::open("/dev/null", O_WRONLY);
  EXPECT_EQ(style_of(file), Style::plain);
  ::close(file);
}

TEST(Style, IsAsWideAsItsTerminalOrAsColumnsSays) {
  const int terminal = ::posix_openpt(O_RDWR | O_NOCTTY);
  ASSERT_GE(terminal, 0);
  ::unsetenv("COLUMNS");
  const winsize size{.ws_row = 24, .ws_col = 93, .ws_xpixel = 0, .ws_ypixel = 0};
  ASSERT_EQ(::ioctl(terminal, TIOCSWINSZ, &size), 0);
  EXPECT_EQ(style_of(terminal).width, 93U);
  ::setenv("COLUMNS", "120", 1);
  EXPECT_EQ(style_of(terminal).width, 120U);
  ::setenv("COLUMNS", "7", 1);
  EXPECT_EQ(style_of(terminal).width, 40U) << "no table has room there";
  ::setenv("COLUMNS", "wide", 1);
  EXPECT_EQ(style_of(terminal).width, 93U);
  ::unsetenv("COLUMNS");
  ::close(terminal);
  const int file = ::open("/dev/null", O_WRONLY);
  EXPECT_EQ(style_of(file).width, any_width);
  ::close(file);
}

TEST(ProgressLine, IsCutWhereTheTerminalEnds) {
  ::setenv("COLUMNS", "40", 1);
  std::ostringstream terminal;
  {
    ProgressLine line(&terminal);
    line.show(std::string(200, 'x'));
    EXPECT_EQ(terminal.str(), '\r' + std::string(36, 'x') + "\u2026");
    line.show("short");
  }
  ::unsetenv("COLUMNS");
  EXPECT_TRUE(terminal.str().ends_with("\rshort\r     \r")) << terminal.str();
}

TEST(PrintTable, PrintsColumnsThatDoNotFitInATableOfTheirOwn) {
  const std::vector<std::vector<std::string>> rows{{"slowest", "one", "other", "third"},
                                                   {"matmul", "25x 2.792 ms", "1x", "3x"}};
  const std::vector<Align> alignment{Align::left, Align::right, Align::right, Align::right};
  const auto printed_at = [&](std::size_t width) {
    std::ostringstream out;
    print_table(out, alignment, rows, width);
    return out.str();
  };
  EXPECT_EQ(printed_at(any_width),
            "  slowest           one  other  third\n"
            "  matmul   25x 2.792 ms     1x     3x\n");
  EXPECT_EQ(printed_at(37), printed_at(any_width));
  EXPECT_EQ(printed_at(36),
            "  slowest           one  other\n"
            "  matmul   25x 2.792 ms     1x\n"
            "\n"
            "  slowest  third\n"
            "  matmul      3x\n");
  EXPECT_EQ(times(printed_at(1), "slowest"), 3) << "one column at least";
}

TEST(Fitted, BreaksLinesBetweenWordsAndGoesOnBelowTheLastColumn) {
  EXPECT_EQ(fitted("note: a b c d e f g h\nshort\n", 14), "note: a b c d\n  e f g h\nshort\n");
  EXPECT_EQ(fitted("  fix   one two three four\n", 18), "  fix   one two\n        three four\n");
  EXPECT_EQ(fitted("      one two three four\n", 16), "      one two\n      three four\n");
  EXPECT_EQ(fitted("a word_that_is_longer_than_a_line b", 10),
            "a\n  word_that_is_longer_than_a_line\n  b");
  EXPECT_EQ(fitted("\x1b[32mpasses\x1b[0m it is \u00e9\u00e9", 15),
            "\x1b[32mpasses\x1b[0m it is \u00e9\u00e9");
  EXPECT_EQ(fitted("", 10), "");
}

TEST(PrintVerdict, SaysThatTheSuiteAsAWholeFailsOrALineAmongOthers) {
  const std::vector<Verdict> suite{verdict_of_fix(2000), verdict_of_fix(2000)};
  SuiteVerdict together;
  together.lines = 2;
  together.evidence = 1234;
  together.failed = true;
  together.failed_among_others = {"scripted.pays"};
  std::ostringstream out;
  RunSoFar run = ended_run(suite);
  run.suite = together;
  print_tally(out, report_of(run), Style::plain);
  EXPECT_NE(out.str().find("fails: the suite as a whole: the evidence against its 2 comparisons "
                           "together is 1230, and 100 is enough; wrongly so in at most 1 % of "
                           "runs"),
            std::string::npos)
      << out.str();
  EXPECT_NE(out.str().find("\n2 scenarios, 2 pass; fails as a suite\n"), std::string::npos)
      << out.str();
  EXPECT_NE(out.str().find("fails: scripted.pays, undecided alone, by the evidence among all 2 "
                           "comparisons"),
            std::string::npos)
      << out.str();
}

TEST(PrintVerdict, SaysWhatAVerdictWillCostBeforeTheFirstRound) {
  std::ostringstream out;
  print_forecast(out, "pays",
                 {.round = 250ms,
                  .rounds_to_hold = 6,
                  .rounds_to_refute = 7,
                  .rounds_for_one_percent = 12,
                  .rounds_that_fit = 110});
  EXPECT_EQ(out.str(),
            "pays: can pass after 6 rounds (1.5 s), fail after 7 rounds (1.8 s); a line 1 % "
            "from its limit takes about 12 rounds (3 s); there is room for 110\n");
}

}  // namespace
}  // namespace stepgate
