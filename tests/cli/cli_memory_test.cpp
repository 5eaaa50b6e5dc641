// SPDX-License-Identifier: MIT
// The built program from outside: scenarios that their plans decide, and memory that is refused.
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/cli/command_line.h"

namespace stepgate {
namespace {

std::string churn(const std::string& tags, const std::string& expect) {
  return "claim = \"a cap refuses the larger batch\"\n" + tags +
         "model = { layers = 2, hidden = 512 }\n"
         "batch = { sizes = [256, 8192] }\n"
         "transfer.host = \"resident\"\n"
         "alloc = { with = \"caching\", when = \"op\" }\n"
         "[variant.baseline]\nalloc.cap = \"140 MiB\"\n"
         "[variant.fix]\n"
         "[expect]\nline = \"" +
         expect + "\"\n";
}

constexpr const char* no_gpu = "tags = [\"no_gpu\"]\n";

TEST_F(CommandLine, DrawsNothingOverTheScenario) {
  write("a.toml", holding);
  const Finished run = stepgate({"plan", "a.toml", "--memory", "--picture", "a.toml"});
  EXPECT_EQ(run.exit_code, 2) << run.out;
  EXPECT_TRUE(contains(run.err, "would be written over what is read")) << run.err;
  EXPECT_EQ(text_of(place() / "a.toml"), holding);
}

TEST_F(CommandLine, DecidesByPlansAloneWhatIsTaggedSo) {
  write("churn.toml", churn(no_gpu, "fix.device_allocs_per_step == 0"));
  const Finished run = stepgate({"run", "churn.toml", "-v", "--json", "report.json"});
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_TRUE(contains(run.out, "churn, by its plans: no device takes part\n")) << run.out;
  EXPECT_TRUE(contains(run.out, "\nchurn: holds by its plans\n")) << run.out;
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
               "churn.toml:6:10: variant 'baseline' is refused memory in 25 of 50 steps and "
               "cannot be timed: step 1, 'allocate "))
      << run.err;
  EXPECT_TRUE(contains(run.err, "; tag the scenario \"no_gpu\" to have its plans decide it"))
      << run.err;
}

TEST_F(CommandLine, MeasuresNothingWherePlansDecide) {
  write("churn.toml", churn(no_gpu, "fix.ooms == 0"));
  const Finished refused =
      stepgate({"accept", "churn.toml", "--device", "simulated:round-numbers"});
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_TRUE(contains(refused.err, "'churn' is tagged no_gpu: its plans decide it"))
      << refused.err;
}

// A step of some 100 MiB under a share of a device's memory.
std::string shared(const std::string& tags, const std::string& cap, std::int64_t batch) {
  return "claim = \"a share of the device\"\n" + tags +
         "model = { layers = 2, hidden = 1024 }\nbatch = { size = " + std::to_string(batch) +
         " }\nalloc = { with = \"caching\", when = \"op\" }\n"
         "[variant.capped]\nalloc.cap = \"" +
         cap +
         "\"\n[variant.fix]\n"
         "[expect]\nsame = \"capped.peak_reserved == 1 * fix.peak_reserved\"\n";
}

TEST_F(CommandLine, CapsAtAShareOfTheDeviceThatRuns) {
  write("share.toml", shared("", "60% of device", 512));
  const Finished run = simulate({"share.toml"});
  EXPECT_EQ(run.exit_code, 0) << run.err;
  write("share.toml", shared("", "1% of device", 1048576));
  const Finished refused = simulate({"share.toml"});
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_TRUE(contains(refused.err, "share.toml:5:10: variant 'capped' ")) << refused.err;
  EXPECT_TRUE(contains(refused.err, " under a cap of ")) << refused.err;
}

TEST_F(CommandLine, RefusesAShareOfADeviceWhereThereIsNone) {
  write("share.toml", shared("", "60% of device", 512));
  EXPECT_EQ(stepgate({"check", "share.toml"}).exit_code, 0);
  const Finished plan = stepgate({"plan", "share.toml", "--memory"});
  EXPECT_EQ(plan.exit_code, 2);
  EXPECT_EQ(plan.err,
            "share.toml: variant 'capped' is capped at 60% of a device's memory, and a plan alone "
            "has no device; say how much that is: --set alloc.cap=<bytes>\n");
  EXPECT_EQ(stepgate({"plan", "share.toml", "--memory", "--variant", "fix"}).exit_code, 0);
  EXPECT_EQ(stepgate({"plan", "share.toml", "--set", "alloc.cap=1GiB"}).exit_code, 0);
  const Finished reference = stepgate({"run", "share.toml", "--device", "reference"});
  EXPECT_EQ(reference.exit_code, 2);
  EXPECT_TRUE(contains(reference.err, "and the host reference (no times) has none; "))
      << reference.err;
  write("share.toml", shared(no_gpu, "60% of device", 512));
  const Finished planned_only = stepgate({"run", "share.toml"});
  EXPECT_EQ(planned_only.exit_code, 2);
  EXPECT_TRUE(contains(planned_only.err, "is decided without a device; write it in bytes"))
      << planned_only.err;
}

TEST_F(CommandLine, RefusesNumbersThatTheDeviceCannotMultiply) {
  std::ostringstream profile;
  profile
      << std::ifstream(STEPGATE_SOURCE_DIR "/tests/baselines/round-numbers/device.toml").rdbuf();
  std::string older = profile.str();
  const std::string capability = "compute_capability = 9";
  ASSERT_TRUE(contains(older, capability));
  older.replace(older.find(capability), capability.size(), "compute_capability = 7.5");
  write("baselines/older/device.toml", older);
  write("narrow.toml",
        "claim = \"narrow numbers are faster\"\nmodel = { layers = 2, hidden = 64 }\n"
        "[variant.wide]\n[variant.narrow]\nmodel.dtype = \"bf16\"\n"
        "[expect]\nsame = \"wide.host_waits_per_step == 0\"\n");
  const auto run_on = [&](const std::string& device) {
    return stepgate({"--baselines", "baselines", "run", "narrow.toml", "--device", device});
  };
  const Finished refused = run_on("simulated:older");
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_TRUE(contains(refused.err,
                       "narrow.toml:4:10: variant 'narrow': bf16 needs compute capability "
                       "8.0, and a simulated "))
      << refused.err;
  EXPECT_TRUE(contains(refused.err, " has 7.5; write model.dtype = \"fp32\"\n")) << refused.err;
  EXPECT_FALSE(contains(refused.err, "'wide'")) << refused.err;
  EXPECT_EQ(run_on("reference").err, "");  // the host multiplies everything
}

TEST_F(CommandLine, EndsARunWhosePoolMayTakeNoMoreWithOneSentence) {
  write("leak.toml",
        "claim = \"a leak in a pool\"\nmodel = { layers = 2, hidden = 256 }\n"
        "alloc = { with = \"cuda_async\", when = \"step\", cap = \"100 MiB\", "
        "leak_bytes = \"1 MiB\" }\n[variant.fix]\n"
        "[expect]\nline = \"fix.device_allocs_per_step >= 1\"\n");
  const Finished run = simulate({"leak.toml"});
  EXPECT_EQ(run.exit_code, 3);
  EXPECT_TRUE(contains(run.out,
                       "leak: the device failed: variant 'fix', 'leak memory': cannot allocate 1 "
                       "MiB for 'leak': "))
      << run.out;
  EXPECT_TRUE(contains(run.out, " in the pool, which may take ")) << run.out;
  EXPECT_TRUE(contains(run.out, "; raise 'alloc.cap', or lower 'batch.size'")) << run.out;
}

TEST_F(CommandLine, MeasuresAStepThatForgetsToRelease) {
  write("forgets.toml",
        "claim = \"a step forgets\"\nmodel = { layers = 2, hidden = 256 }\n"
        "alloc = { with = \"caching\", when = \"step\" }\n"
        "[variant.baseline]\nalloc.release = false\n[variant.fix]\n"
        "[expect]\nleaks = \"baseline.live_slope >= 100 KiB/step\"\n"
        "clean = \"fix.live_slope == 0 B/step\"\n");
  const Finished run = simulate({"forgets.toml"});
  EXPECT_EQ(run.exit_code, 0) << run.out << run.err;
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
