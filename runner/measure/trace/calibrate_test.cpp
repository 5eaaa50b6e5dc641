// SPDX-License-Identifier: MIT
#include "measure/trace/calibrate.h"

#include <gtest/gtest.h>

#include "device/simulated/simulated_device.h"
#include "plan/compose/build_step_plan.h"
#include "plan/count/facts_of.h"
#include "scenario/read/read_scenario.h"

namespace stepgate {
namespace {

constexpr const char* text = R"(
claim = "a copy of a certain size"
[model]
kind      = "spin"
kernels   = 10
kernel_us = 50
[batch]
size         = 64
sample_bytes = "64 KiB"
[transfer]
host = "pinned"
[calibrate]
batch.sample_bytes = "fix.h2d_share ~= AIM within 5%"
[variant.fix]
[expect]
copies = "fix.copies_per_step == 1"
)";

Scenario scenario_with(const std::string& aim, std::vector<std::string> overrides = {}) {
  std::string written = text;
  written.replace(written.find("AIM"), 3, aim);
  return parse_scenario(written, "a.toml", no_base, overrides);
}

Calibrated calibrated_to(const std::string& aim) {
  const Scenario scenario = scenario_with(aim);
  const auto device = make_simulated_device(
      read_profile(STEPGATE_SOURCE_DIR "/baselines/nvidia-h200/device.toml"), {.seed = 5});
  const PlansWith plans_with = [&](const std::string& value) {
    return with_facts(build_step_plans(scenario_with(aim, {"batch.sample_bytes=" + value}), 1));
  };
  const auto written = with_facts(build_step_plans(scenario, 1));
  return calibrate(*device, *scenario.calibrate,
                   calibration_range(*scenario.calibrate, scenario, written), plans_with, written,
                   {.rounds = 3});
}

// A step that a slow device takes longer for than its host.
Scenario hidden_host(const std::string& knob, const std::string& aim,
                     std::vector<std::string> overrides = {}) {
  return parse_scenario(
      "claim = \"a share\"\n"
      "[model]\nkind = \"transformer\"\nlayers = 1\nhidden = 512\nheads = 8\nseq = 64\nvocab = "
      "4096\n"
      "[batch]\nsize = 16\n[host]\nstep_us = 10\n[calibrate]\n" +
          knob + " = \"" + aim +
          "\"\n[variant.fix]\n[expect]\nwaits = \"fix.host_waits_per_step == 0\"\n",
      "a.toml", no_base, overrides);
}

Calibrated calibrated_on(const std::string& profile, const std::string& knob,
                         const std::string& aim) {
  const Scenario scenario = hidden_host(knob, aim);
  const auto device = make_simulated_device(
      read_profile(std::string(STEPGATE_SOURCE_DIR) + "/" + profile + "/device.toml"), {.seed = 5});
  const PlansWith plans_with = [&](const std::string& value) {
    return with_facts(build_step_plans(hidden_host(knob, aim, {knob + "=" + value}), 1));
  };
  const auto written = with_facts(build_step_plans(scenario, 1));
  return calibrate(*device, *scenario.calibrate,
                   calibration_range(*scenario.calibrate, scenario, written), plans_with, written,
                   {.rounds = 3});
}

constexpr const char* slow_profiles[] = {"tests/profiles/l4", "tests/profiles/rtx4090",
                                         "tests/profiles/rtx5060"};

TEST(Calibrate, FindsTheSizeThatGivesTheShare) {
  for (const std::string aim : {"10%", "30%", "60%"}) {
    const Calibrated found = calibrated_to(aim);
    EXPECT_EQ(found.failure, "") << aim;
    EXPECT_NEAR(found.metric, std::stod(aim) / 100, 0.05 * std::stod(aim) / 100) << aim;
    EXPECT_EQ(found.knob, "batch.sample_bytes");
    EXPECT_NE(found.value, "64 KiB");
    EXPECT_LE(found.trials, 16);
  }
}

TEST(Calibrate, SaysHowCloseItCameWhereNoSizeWillDo) {
  const Calibrated found = calibrated_to("100000%");
  EXPECT_NE(found.failure.find("comes closest to fix.h2d_share ~= 100000% within 5%"),
            std::string::npos)
      << found.failure;
}

TEST(Calibrate, AValueThatWasGivenIsNotSearched) {
  EXPECT_FALSE(scenario_with("30%", {"batch.sample_bytes=8 KiB"}).calibrate);
  EXPECT_TRUE(scenario_with("30%", {"batch.size=32"}).calibrate);
}

// The knob counts the fp32 values that the model reads. A batch of bytes takes a quarter of their
// size.
TEST(Calibrate, BeginsWithWhatTheModelReadsWhateverIsCopied) {
  for (const BatchFormat format : {BatchFormat::fp32, BatchFormat::uint8}) {
    Scenario scenario = scenario_with("30%");
    Knobs& knobs = scenario.variants.front().knobs;
    knobs.model = {.kind = ModelKind::mlp, .hidden = 16};
    knobs.batch.sample_bytes.reset();
    knobs.batch.format = format;
    const CalibrationRange range =
        calibration_range(*scenario.calibrate, scenario, with_facts(build_step_plans(scenario, 1)));
    EXPECT_EQ(range.start, 17 * 4);
    EXPECT_EQ(range.least, 17 * 4);
  }
}

TEST(Calibrate, TheAimIsPartOfTheFingerprint) {
  EXPECT_NE(scenario_with("30%").fingerprint, scenario_with("31%").fingerprint);
}

TEST(Calibrate, FindsAShareOfTheHostThatNoTraceShows) {
  for (const std::string profile : slow_profiles) {
    const Calibrated found =
        calibrated_on(profile, "host.step_us", "fix.host_share ~= 60% within 10%");
    EXPECT_EQ(found.failure, "") << profile;
    EXPECT_NEAR(found.metric, 0.6, 0.06) << profile;
    EXPECT_GT(std::stod(found.value), 10) << profile << ": slower than its host as written";
    EXPECT_FALSE(found.is_kept) << profile;
  }
}

TEST(Calibrate, FindsValuesWellInsideALimitOfIdling) {
  for (const std::string profile : slow_profiles) {
    const Calibrated found = calibrated_on(profile, "host.step_us", "fix.gpu_idle >= 20%");
    EXPECT_EQ(found.failure, "") << profile;
    EXPECT_GE(found.metric, 0.2) << profile;
    EXPECT_LE(found.metric, 0.3) << profile;
    EXPECT_FALSE(found.is_kept) << profile;
    EXPECT_LE(found.trials, 16) << profile;
  }
}

TEST(Calibrate, KeepsTheFilesOwnValueInsideALimit) {
  const Calibrated share =
      calibrated_on("baselines/nvidia-h200", "batch.size", "fix.host_share >= 10%");
  EXPECT_TRUE(share.is_kept);
  EXPECT_EQ(share.trials, 1);
  EXPECT_EQ(share.failure, "");
  const Calibrated idle = calibrated_on("tests/profiles/l4", "batch.size", "fix.gpu_idle <= 50%");
  EXPECT_TRUE(idle.is_kept);
}

TEST(Calibrate, SaysTheNearestThereIsToALimitOutOfReach) {
  const Calibrated found =
      calibrated_on("tests/profiles/l4", "loader.depth", "fix.gpu_idle >= 90%");
  EXPECT_NE(found.failure.find("comes closest to fix.gpu_idle >= 90%: fix.gpu_idle is "),
            std::string::npos)
      << found.failure;
  EXPECT_FALSE(found.is_kept);
}

// A search tries values of which many have no heads of equal size.
TEST(Calibrate, PassesOverValuesThatAllowNoPlan) {
  const Calibrated found =
      calibrated_on("tests/profiles/l4", "model.hidden", "fix.host_share >= 18%");
  EXPECT_EQ(found.failure, "");
  EXPECT_GE(found.metric, 0.18);
  EXPECT_LT(std::stod(found.value), 512);
}

TEST(Calibrate, ALimitIsPartOfTheFingerprint) {
  const auto print = [](const std::string& aim) {
    return hidden_host("batch.size", aim).fingerprint;
  };
  EXPECT_NE(print("fix.gpu_idle >= 20%"), print("fix.gpu_idle <= 20%"));
  EXPECT_NE(print("fix.gpu_idle >= 20%"), print("fix.gpu_idle >= 21%"));
}

}  // namespace
}  // namespace stepgate
