// SPDX-License-Identifier: MIT
// `stepgate run` from outside: every exit code that a run can have, its report, its JSON file, and
// what an interruption leaves behind.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/command_line.h"
#include "tests/golden.h"

namespace stepgate {
namespace {

using Json = nlohmann::json;
using RunVerb = CommandLine;

Json parsed(const std::filesystem::path& file) {
  std::ifstream stream(file);
  return Json::parse(stream);
}

TEST_F(RunVerb, HoldsWithCodeZeroAndTheSameReportForTheSameSeed) {
  write("holding.toml", holding);
  const Finished run = simulate({"holding.toml"});
  EXPECT_EQ(run.exit_code, 0);
  EXPECT_EQ(run.err, "");
  // The first line says what the run will cost on this machine's clock.
  expect_golden(std::filesystem::path(STEPGATE_SOURCE_DIR) / "tests" / "golden" / "run_holding.txt",
                run.out.substr(run.out.find('\n') + 1));
}

TEST_F(RunVerb, IsRefutedWithCodeOne) {
  write("refuted.toml", refuted);
  const Finished run = simulate({"refuted.toml"});
  EXPECT_EQ(run.exit_code, 1);
  EXPECT_TRUE(contains(run.out, "refuted: refuted after ")) << run.out;
}

TEST_F(RunVerb, IsUndecidedAsThePolicySays) {
  write("undecided.toml", undecided);
  EXPECT_EQ(simulate({"undecided.toml"}).exit_code, 77);
  EXPECT_EQ(simulate({"undecided.toml", "--undecided", "skip"}).exit_code, 77);
  EXPECT_EQ(simulate({"undecided.toml", "--undecided", "fail"}).exit_code, 1);
  EXPECT_EQ(simulate({"undecided.toml", "--undecided", "pass"}).exit_code, 0);
  const Finished run = simulate({"undecided.toml"});
  EXPECT_TRUE(contains(run.out, "undecided: undecided after 12 rounds of 2 loads")) << run.out;
}

TEST_F(RunVerb, NeverLetsAPolicyExcuseARefutedScenario) {
  write("refuted.toml", refuted);
  EXPECT_EQ(simulate({"refuted.toml", "--undecided", "pass"}).exit_code, 1);
}

TEST_F(RunVerb, SkipsAScenarioWhoseRequirementIsNotMet) {
  write("needs.toml", two_variants("fix.samples_per_s >= 1.5 * baseline.samples_per_s",
                                   "requires = { copy_engines = 60 }\n"));
  const Finished run = simulate({"needs.toml"});
  EXPECT_EQ(run.exit_code, 77);
  EXPECT_TRUE(contains(run.out, "needs: skipped: needs 60 copy engines")) << run.out;
}

TEST_F(RunVerb, TakesTheWorstCodeOfAFolder) {
  write("suite/a.toml", holding);
  write("suite/b.toml", undecided);
  EXPECT_EQ(simulate({"suite"}).exit_code, 77);
  write("suite/c.toml", refuted);
  const Finished run = simulate({"suite"});
  EXPECT_EQ(run.exit_code, 1);
  EXPECT_TRUE(contains(run.out, "3 scenarios, 1 holds, 1 refuted, 1 undecided\n")) << run.out;
}

TEST_F(RunVerb, SaysInOneSentenceThatAStepDoesNotFitAndKeepsWhatWasDecided) {
  write("a.toml", holding);
  write("big.toml",
        "claim = \"too big\"\nmodel = { hidden = 65536, layers = 64 }\n"
        "[variant.only]\n[expect]\nline = \"only.host_waits_per_step == 0\"\n");
  const Finished run = simulate({"a.toml", "big.toml", "--json", "report.json"});
  EXPECT_EQ(run.exit_code, 3);
  EXPECT_TRUE(contains(run.out, "a: holds")) << run.out;
  EXPECT_EQ(run.err.find("the device failed: variant 'only' needs "), 0u) << run.err;
  EXPECT_TRUE(contains(run.err, "device memory")) << run.err;
  EXPECT_EQ(run.err.find('\n'), run.err.size() - 1) << run.err;
  EXPECT_EQ(lines_of("report.json"), 1);
}

#ifndef STEPGATE_WITH_CUDA
TEST_F(RunVerb, SaysThatNothingIsMeasuredWhereThereIsNoGpu) {
  write("holding.toml", holding);
  const Finished run = stepgate({"run", "holding.toml"});
  EXPECT_EQ(run.exit_code, 0);
  EXPECT_EQ(run.out.find("no GPU (this build has no CUDA device): simulating nvidia-h200, nothing"),
            0u)
      << run.out;
}
#endif

TEST_F(RunVerb, WritesNoColourAndNoProgressIntoAPipe) {
  write("holding.toml", holding);
  const Finished run = simulate({"holding.toml"});
  EXPECT_EQ(run.out.find_first_of("\x1b\r"), std::string::npos);
  EXPECT_EQ(run.err, "");
}

TEST_F(RunVerb, WritesWhatARunMeasuredAndDecidedAsJson) {
  write("refuted.toml", refuted);
  EXPECT_EQ(simulate({"refuted.toml", "--json", "out/report.json"}).exit_code, 1);
  const Json report = parsed(place() / "out" / "report.json");
  EXPECT_EQ(report.at("scenario"), "refuted");
  EXPECT_EQ(report.at("outcome"), "refuted");
  EXPECT_EQ(report.at("device").at("kind"), "simulated");
  EXPECT_EQ(report.at("expect").size(), 1u);
  EXPECT_EQ(report.at("expect")[0].at("timed").at("contrasts").size(),
            report.at("measurement").at("rounds").size());
}

TEST_F(RunVerb, DecidesTheSameAgainFromTheSeedInItsReport) {
  write("a.toml", holding);
  ASSERT_EQ(stepgate({"run", "a.toml", "--device", "simulated", "--json", "first"}).exit_code, 0);
  const Json first = parsed(place() / "first");
  const std::string seed = "0x" + first.at("run").at("seed").get<std::string>();
  SCOPED_TRACE("the seed was " + seed);
  ASSERT_EQ(stepgate({"run", "a.toml", "--device", "simulated", "--json", "again", "--seed", seed})
                .exit_code,
            0);
  const Json again = parsed(place() / "again");
  EXPECT_EQ(first.at("expect"), again.at("expect"));
  EXPECT_EQ(first.at("measurement").at("rounds"), again.at("measurement").at("rounds"));
}

TEST_F(RunVerb, LeavesUndecidedWhatItsBudgetCannotDecide) {
  write("endless.toml", endless);
  const Finished run = simulate({"endless.toml", "--budget", "0.2"});
  EXPECT_EQ(run.exit_code, 77) << run.out;
  EXPECT_TRUE(
      contains(run.out, "its 0.2 s have room for 0 rounds, and no verdict takes fewer than 6"))
      << run.out;
  EXPECT_TRUE(contains(run.out, "endless: undecided")) << run.out;
  write("few.toml", two_variants("fix.samples_per_s >= 1.5 * baseline.samples_per_s",
                                 "measure = { rounds = 3 }\n"));
  const Finished few = simulate({"few.toml"});
  EXPECT_EQ(few.exit_code, 77) << few.out;
  EXPECT_TRUE(
      contains(few.out, "'measure.rounds' allows 3 rounds, and no verdict takes fewer than"))
      << few.out;
}

TEST_F(RunVerb, SaysBeforeTheFirstRoundWhatAVerdictWillCost) {
  write("holding.toml", holding);
  const Finished run = simulate({"holding.toml"});
  EXPECT_EQ(run.out.find("holding: can hold after 6 rounds ("), 0U) << run.out;
}

TEST_F(RunVerb, EndsWhenInterruptedAndKeepsWhatWasDecided) {
  for (const int signal : {SIGINT, SIGTERM}) {
    write("a.toml", holding);
    write("b.toml", endless);
    write("report.json", "of yesterday");
    ChildProcess run(STEPGATE_PROGRAM, simulating({"a.toml", "b.toml", "--json", "report.json"}),
                     place());
    // The first verdict is out as soon as it is reached; by then signals are handled.
    ASSERT_TRUE(run.says("a: holds", std::chrono::seconds(60)));
    run.send(signal);
    const Finished finished = run.wait();
    EXPECT_EQ(finished.exit_code, 128 + signal);
    for (const char* outcome : {"b: holds", "b: refuted", "b: undecided"}) {
      EXPECT_FALSE(contains(finished.out, outcome)) << finished.out;
    }
    EXPECT_EQ(finished.err, "interrupted: 'b' is not decided\n");
    EXPECT_EQ(lines_of("report.json"), 1);
    EXPECT_EQ(parsed(place() / "report.json").at("scenario"), "a");
    EXPECT_EQ(std::distance(std::filesystem::directory_iterator(place()), {}), 3);
  }
}

// The reference device computes for minutes here and asks nobody in between.
TEST_F(RunVerb, EndsAtOnceWhenInterruptedTwice) {
  write("a.toml", holding);
  write("b.toml",
        "claim = \"long\"\nmodel = { layers = 32, hidden = 1024 }\nbatch.size = 1024\n"
        "[variant.only]\n[expect]\nline = \"only.host_waits_per_step == 0\"\n");
  ChildProcess run(STEPGATE_PROGRAM, {"run", "a.toml", "b.toml", "--device", "reference"}, place());
  ASSERT_TRUE(run.says("a: undecided", std::chrono::seconds(60)));
  // Two signals that are sent too close arrive as one.
  int sent = 0;
  while (!run.ends(std::chrono::milliseconds(50)) && sent < 100) {
    run.send(SIGINT);
    ++sent;
  }
  EXPECT_GE(sent, 2);
  EXPECT_LT(sent, 100);
  EXPECT_EQ(run.wait().exit_code, 128 + SIGINT);
}

}  // namespace
}  // namespace stepgate
