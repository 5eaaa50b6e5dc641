// SPDX-License-Identifier: MIT
// Tests tracing by `stepgate run` from outside: the tracing process and the files that it makes.
// tests/scripts/cli/trace.txt tests the assertions that a trace decides.
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "tests/cli/command_line.h"

namespace stepgate {
namespace {

using Json = nlohmann::json;
using TracedRun = CommandLine;

const std::string counted_line = two_variants("fix.host_waits_per_step == 0");

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

TEST_F(TracedRun, TracesEachPointOfASweep) {
  write("swept.toml",
        "claim = \"c\"\nmodel.kind = \"spin\"\n[sweep]\nmodel.kernels = [2, 8]\n[variant.step]\n"
        "[expect]\nfew  = \"step.launches_per_step == 4 when model.kernels == 2\"\n"
        "many = \"step.launches_per_step == 10 when model.kernels == 8\"\n");
  const Finished run = simulate({"swept.toml", "--json", "r.json"});
  EXPECT_EQ(run.exit_code, 0) << run.out << run.err;
  std::ifstream file(place() / "r.json");
  std::string line;
  for (const int launches : {4, 10}) {
    ASSERT_TRUE(std::getline(file, line));
    const auto traced = Json::parse(line).at("mechanism").at("variants").at(0);
    EXPECT_EQ(traced.at("values").at("launches_per_step"), launches);
  }
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

TEST_F(TracedRun, GoesOnWithoutATraceWhereItsProcessCannotStart) {
  write("counted.toml", counted_line);
  ASSERT_EQ(::setenv("TMPDIR", "/nowhere", 1), 0);
  const Finished run = simulate({"counted.toml"});
  ASSERT_EQ(::unsetenv("TMPDIR"), 0);
  EXPECT_EQ(run.exit_code, 77) << run.out << run.err;
  EXPECT_TRUE(contains(run.out, "trace unavailable: the tracing process cannot be started: "))
      << run.out;
}

}  // namespace
}  // namespace stepgate
