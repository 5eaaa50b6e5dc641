// SPDX-License-Identifier: MIT
// Tests what `stepgate run` traces, from outside: the tracing process, the files that it makes, and
// a run without one.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/cli/command_line.h"

namespace stepgate {
namespace {

using Json = nlohmann::json;
using TracedRun = CommandLine;

const std::string counted_line = two_variants("fix.host_waits_per_step == 0");

TEST_F(TracedRun, DecidesAnExactSentenceByTheTrace) {
  write("counted.toml", counted_line);
  const Finished run = simulate({"counted.toml"});
  EXPECT_EQ(run.exit_code, 0) << run.out << run.err;
  EXPECT_TRUE(contains(run.out, "2 traced rounds of 20 steps")) << run.out;
}

TEST_F(TracedRun, LeavesAnExactSentenceUndecidedWithoutOne) {
  write("counted.toml", counted_line);
  const Finished run = simulate({"counted.toml", "--no-trace"});
  EXPECT_EQ(run.exit_code, 77);
  EXPECT_TRUE(contains(run.out, "not traced (--no-trace); the plan says 0")) << run.out;
}

TEST_F(TracedRun, WritesATraceForEveryVariantAndOnePicture) {
  write("counted.toml", counted_line);
  const Finished run =
      simulate({"counted.toml", "--trace", "out/t.json", "--picture", "out/p.svg"});
  EXPECT_EQ(run.exit_code, 0) << run.err;
  for (const std::string variant : {"baseline", "fix"}) {
    const Json trace = Json::parse(text_of(place() / "out" / ("t.counted." + variant + ".json")));
    EXPECT_GT(trace.at("traceEvents").size(), 100U);
  }
  EXPECT_TRUE(text_of(place() / "out" / "p.svg").starts_with("<svg"));
}

TEST_F(TracedRun, RefusesTimelinesOfARunThatTracesNothing) {
  write("counted.toml", counted_line);
  EXPECT_EQ(simulate({"counted.toml", "--no-trace", "--picture", "p.svg"}).exit_code, 2);
}

TEST_F(TracedRun, SaysWhichValueAKnobWasCalibratedToAndAcceptsItNextTime) {
  write("share.toml", calibrated);
  const Finished run = simulate({"share.toml", "--json", "r.json"});
  EXPECT_EQ(run.exit_code, 0) << run.out << run.err;
  const Json found = Json::parse(text_of(place() / "r.json")).at("calibrated");
  const std::string given = "batch.sample_bytes=" + found.at("value").get<std::string>();
  EXPECT_TRUE(contains(run.out, "calibrated: batch.sample_bytes = ")) << run.out;
  const Finished again = simulate({"share.toml", "--set", given});
  EXPECT_EQ(again.exit_code, 0) << again.out << again.err;
  EXPECT_FALSE(contains(again.out, "calibrated:"));
}

TEST_F(TracedRun, SkipsAScenarioThatNoValueCalibrates) {
  write("far.toml",
        "claim = \"a copy that takes a thousand steps\"\n"
        "model = { kind = \"spin\", kernels = 10, kernel_us = 50 }\n"
        "transfer.host = \"pinned\"\n"
        "[calibrate]\nloader.depth = \"fix.h2d_share ~= 100000% within 5%\"\n"
        "[variant.fix]\n[expect]\nwaits = \"fix.host_waits_per_step == 0\"\n");
  const Finished run = simulate({"far.toml"});
  EXPECT_EQ(run.exit_code, 77) << run.out << run.err;
  EXPECT_TRUE(contains(run.out, "skipped: cannot be calibrated: loader.depth = ")) << run.out;
}

TEST_F(TracedRun, GoesOnWithoutATraceWhereItsProcessCannotStart) {
  write("counted.toml", counted_line);
  ASSERT_EQ(::setenv("TMPDIR", "/nowhere", 1), 0);
  const Finished run = simulate({"counted.toml"});
  ASSERT_EQ(::unsetenv("TMPDIR"), 0);
  EXPECT_EQ(run.exit_code, 77) << run.out << run.err;
  EXPECT_TRUE(contains(run.out, "trace unavailable: the tracing process cannot be started: "))
      << run.out;
}

TEST_F(TracedRun, VerbsThatDoNotTraceWantTheCalibratedValue) {
  write("share.toml",
        "claim = \"a copy\"\ntransfer.host = \"pinned\"\n"
        "[calibrate]\nbatch.sample_bytes = \"fix.h2d_share ~= 30% within 5%\"\n"
        "[variant.fix]\n[expect]\nwaits = \"fix.host_waits_per_step == 0\"\n");
  const Finished run = simulate({"share.toml", "--no-trace"});
  EXPECT_EQ(run.exit_code, 2);
  EXPECT_TRUE(contains(run.err, "'batch.sample_bytes' is to be calibrated")) << run.err;
  EXPECT_TRUE(contains(run.err, "--set batch.sample_bytes=<value>")) << run.err;
}

}  // namespace
}  // namespace stepgate
