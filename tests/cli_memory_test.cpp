// SPDX-License-Identifier: MIT
// The built program from outside: scenarios that their plans decide, and memory that is refused.
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/command_line.h"

namespace stepgate {
namespace {

std::string churn(const std::string& tags, const std::string& expect) {
  return "claim = \"a cap refuses the larger batch\"\n" + tags +
         "model = { layers = 2, hidden = 512 }\n"
         "batch = { sizes = [256, 8192] }\n"
         "alloc = { with = \"caching\", when = \"op\" }\n"
         "[variant.baseline]\nalloc.cap = \"140 MiB\"\n"
         "[variant.fix]\n"
         "[expect]\nline = \"" +
         expect + "\"\n";
}

constexpr const char* no_gpu = "tags = [\"no_gpu\"]\n";

TEST_F(CommandLine, DecidesByPlansAloneWhatIsTaggedSo) {
  write("churn.toml", churn(no_gpu, "fix.device_allocs_per_step == 0"));
  const Finished run = stepgate({"run", "churn.toml", "--json", "report.json"});
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_TRUE(contains(run.out, "churn, by its plans: no device takes part\n")) << run.out;
  EXPECT_TRUE(contains(run.out, "\nchurn: holds\n")) << run.out;
  EXPECT_FALSE(contains(run.out, "traced")) << run.out;
  std::ifstream file(place() / "report.json");
  const auto report = nlohmann::json::parse(file);
  EXPECT_EQ(report["outcome"], "holds");
  EXPECT_TRUE(report["device"].is_null());
  write("churn.toml", churn(no_gpu, "baseline.ooms == 0"));
  EXPECT_EQ(stepgate({"run", "churn.toml"}).exit_code, 1);
}

TEST_F(CommandLine, TimesNoVariantThatIsRefusedMemory) {
  write("churn.toml", churn("", "fix.samples_per_s >= 1 * baseline.samples_per_s"));
  const Finished run = simulate({"churn.toml"});
  EXPECT_EQ(run.exit_code, 2);
  EXPECT_EQ(run.out, "");
  EXPECT_TRUE(
      contains(run.err,
               "churn.toml:5:10: variant 'baseline' is refused memory in 25 of 50 steps and "
               "cannot be timed: step 1, 'allocate "))
      << run.err;
  EXPECT_TRUE(contains(run.err, "; tag the scenario \"no_gpu\" to have its plans decide it"))
      << run.err;
}

TEST_F(CommandLine, MeasuresNothingWherePlansDecide) {
  write("churn.toml", churn(no_gpu, "fix.ooms == 0"));
  for (const char* verb : {"accept", "certify"}) {
    const Finished refused = stepgate({verb, "churn.toml", "--device", "simulated:round-numbers"});
    EXPECT_EQ(refused.exit_code, 2) << verb;
    EXPECT_TRUE(contains(refused.err, "'churn' is tagged no_gpu: its plans decide it"))
        << refused.err;
  }
}

TEST_F(CommandLine, WritesWhatAnAllocatorDoesForAMemoryViewer) {
  write("churn.toml", churn(no_gpu, "fix.ooms == 0"));
  const Finished plan = stepgate({"plan", "churn.toml", "--memory-snapshot", "m.pickle"});
  EXPECT_EQ(plan.exit_code, 0) << plan.err;
  for (const char* file : {"m.churn.baseline.pickle", "m.churn.fix.pickle"}) {
    std::ifstream written(place() / file, std::ios::binary);
    const std::string bytes{std::istreambuf_iterator<char>(written), {}};
    ASSERT_FALSE(bytes.empty()) << file;
    EXPECT_EQ(bytes.front(), '\x80');
    EXPECT_EQ(bytes.back(), '.');
  }
  write("static.toml", holding);
  const Finished none = stepgate({"plan", "static.toml", "--memory-snapshot", "m.pickle"});
  EXPECT_EQ(none.exit_code, 2);
  EXPECT_TRUE(contains(none.err, "no variant has an allocator of its own")) << none.err;
}

}  // namespace
}  // namespace stepgate
