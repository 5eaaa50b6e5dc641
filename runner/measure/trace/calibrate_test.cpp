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
                   calibration_range(*scenario.calibrate, scenario, written), plans_with,
                   {.rounds = 3});
}

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

}  // namespace
}  // namespace stepgate
