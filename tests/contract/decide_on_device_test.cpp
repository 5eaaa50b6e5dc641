// SPDX-License-Identifier: MIT
// Tests a suite on a device that fails in the middle of it.
#include "line/decide_on_device.h"

#include <gtest/gtest.h>

#include <optional>
#include <sstream>

#include "device/simulated/simulated_device.h"
#include "plan/compose/build_step_plan.h"
#include "plan/count/facts_of.h"
#include "report/testing/reports.h"
#include "report/writers.h"
#include "scenario/read/read_scenario.h"

namespace stepgate {
namespace {

Planned planned(const std::string& name, const std::string& expect) {
  const Scenario scenario = parse_scenario(
      "claim = \"half the kernels take half the time\"\n"
      "model = { kind = \"spin\", kernel_us = 20 }\n"
      "[variant.baseline]\nmodel.kernels = 20\n[variant.fix]\nmodel.kernels = 10\n"
      "[expect]\n" +
          expect,
      name + ".toml");
  return {.scenario = scenario, .plans = with_facts(build_step_plans(scenario, 1))};
}

const std::string timed = "line = \"fix.samples_per_s >= 1.5 * baseline.samples_per_s\"\n";
const std::string by_plan = "line = \"fix.launches_per_step < baseline.launches_per_step\"\n";
const std::string against_plan = "line = \"fix.launches_per_step > baseline.launches_per_step\"\n";

SimulatedSettings failing_at_once(bool for_good) {
  return {.seed = 1, .fails_at_step = 0, .fails_for_good = for_good};
}

std::unique_ptr<Device> simulated(SimulatedSettings settings = {.seed = 1}) {
  return make_simulated_device(
      read_profile(STEPGATE_SOURCE_DIR "/tests/baselines/round-numbers/device.toml"),
      std::move(settings));
}

struct Suite {
  explicit Suite(SimulatedSettings settings)
      : device(simulated(std::move(settings))),
        line({.device = *device, .identity = device->identity(), .seed = 1}) {}

  void decide(const Planned& one) { verdicts.push_back(line.decide(one).verdict); }

  std::string told() const {
    std::ostringstream out;
    for (const Verdict& verdict : verdicts) print_outcome(out, reported(verdict), Style::plain);
    print_tally(out, report_of(ended_run(verdicts)), Style::plain);
    return out.str();
  }

  std::unique_ptr<Device> device;
  DecideOnDevice line;
  std::vector<Verdict> verdicts;
};

TEST(DecideOnDevice, GoesOnAfterAFailureThatPasses) {
  Suite suite(failing_at_once(false));
  suite.decide(planned("one", timed));
  suite.decide(planned("two", timed));
  for (const Verdict& verdict : suite.verdicts) {
    EXPECT_NE(verdict.failed.value_or("").find("as planted"), std::string::npos);
    EXPECT_FALSE(verdict.not_run);
  }
}

TEST(DecideOnDevice, AsksALostDeviceNothingMore) {
  Suite suite(failing_at_once(true));
  for (const char* name : {"one", "two", "three"}) suite.decide(planned(name, timed));
  EXPECT_FALSE(suite.verdicts[0].not_run);
  for (const std::size_t later : {1, 2}) {
    EXPECT_TRUE(suite.verdicts[later].not_run);
    EXPECT_EQ(suite.verdicts[later].failed,
              "the device was lost at 'one', before its turn; run it again by itself");
  }
  EXPECT_EQ(report_of(ended_run(suite.verdicts)).code, ExitCode::device_failed);
}

TEST(DecideOnDevice, TellsALossOnce) {
  Suite suite(failing_at_once(true));
  for (int index = 0; index < 50; ++index)
    suite.decide(planned("scenario_" + std::to_string(index), timed));
  const std::string told = suite.told();
  EXPECT_EQ(told.find("as planted"), told.rfind("as planted")) << told;
  EXPECT_EQ(told.find("before its turn"), std::string::npos) << told;
  EXPECT_NE(told.find("50 scenarios, 1 device failed (scenario_0), 49 not run (scenario_1, "),
            std::string::npos)
      << told;
}

TEST(DecideOnDevice, StillDecidesWhatNeedsNoDevice) {
  Suite suite(failing_at_once(true));
  suite.decide(planned("lost", timed));
  suite.decide(planned("passes", by_plan));
  suite.decide(planned("fails", against_plan));
  EXPECT_TRUE(suite.verdicts[1].not_run);
  EXPECT_EQ(suite.verdicts[1].outcome, Outcome::passes);
  EXPECT_EQ(suite.verdicts[2].outcome, Outcome::fails);
  EXPECT_EQ(report_of(ended_run(suite.verdicts)).code, ExitCode::fails);
  EXPECT_NE(suite.told().find("fails.line fails"), std::string::npos) << suite.told();
}

// A device that is lost after it has loaded `loads` steps.
class LostAtALoad : public Device {
 public:
  LostAtALoad(std::unique_ptr<Device> device, int last) : device_(std::move(device)), left_(last) {}
  DeviceIdentity identity() const override { return device_->identity(); }
  std::chrono::nanoseconds now() const override { return device_->now(); }
  std::unique_ptr<LoadedStep> load(const StepPlan& plan, const LoadDraw& draw) override {
    return device_->load(plan, draw);
  }
  std::unique_ptr<LoadedStep> load_into(int slot, const StepPlan& plan,
                                        const LoadDraw& draw) override {
    if (left_-- == 0) throw DeviceLost("cannot load: the cable is out");
    return device_->load_into(slot, plan, draw);
  }
  std::vector<StepResult> run_interleaved(std::span<LoadedStep* const> steps,
                                          const Interleaving& how) override {
    return device_->run_interleaved(steps, how);
  }

 private:
  std::unique_ptr<Device> device_;
  int left_;
};

TEST(DecideOnDevice, NamesTheRoundOfALoss) {
  LostAtALoad device(simulated(), 2 * 5);  // two variants, each loaded once before the first round
  DecideOnDevice line({.device = device, .identity = device.identity(), .seed = 1});
  EXPECT_EQ(line.decide(planned("one", timed)).verdict.failed,
            "round 5: cannot load: the cable is out");
}

// A device without a library that every plan needs, which is lost where it loads one all the same.
class WithoutALibrary : public LostAtALoad {
 public:
  explicit WithoutALibrary(std::unique_ptr<Device> device) : LostAtALoad(std::move(device), 0) {}
  std::optional<std::string> missing_for(const StepPlan& plan) override {
    return plan.variant + " is the library's; install it";
  }
};

TEST(DecideOnDevice, SkipsWhatNeedsALibraryThatIsNotThereBeforeItLoadsAnything) {
  WithoutALibrary device(simulated());
  DecideOnDevice line({.device = device, .identity = device.identity(), .seed = 1});
  const Verdict verdict = line.decide(planned("one", timed)).verdict;
  EXPECT_EQ(verdict.skipped_because, "baseline is the library's; install it");
  EXPECT_EQ(verdict.outcome, Outcome::skipped);
  EXPECT_EQ(line.decide(planned("plans", by_plan)).verdict.outcome, Outcome::skipped);
  EXPECT_EQ(report_of(ended_run({verdict})).code, ExitCode::undecided);
}

}  // namespace
}  // namespace stepgate
