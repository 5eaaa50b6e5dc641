// SPDX-License-Identifier: MIT
// Runs the device contract on the devices that need no GPU, and tests behaviour that only a
// simulated device can show.
#include <gtest/gtest.h>

#include <filesystem>

#include "device/reference/reference_device.h"
#include "device/simulated/simulated_device.h"
#include "tests/contract/device_contract.h"

namespace stepgate {
namespace {

std::unique_ptr<Device> make_simulated(SimulatedSettings settings) {
  const std::filesystem::path source = STEPGATE_SOURCE_DIR;
  return make_simulated_device(read_profile(source / "baselines/nvidia-h200/device.toml"),
                               std::move(settings));
}

TEST(SimulatedDeviceContract, RunsAStepAfterAnotherOneFailed) {
  const StepPlan plan = plan_of(model_knobs("spin"));
  const auto device = make_simulated({.seed = 1, .slowdowns = {}, .fails_at_step = 4});
  const auto failing = device->load(plan);
  const auto other = device->load(plan);
  EXPECT_THROW((void)failing->run({.steps = 10}), DeviceError);
  const StepResult result = other->run({.steps = 4});
  EXPECT_EQ(result.first_step, 0);
  EXPECT_EQ(result.step_times.size(), 3u);
  EXPECT_GT(result.elapsed->count(), 0);
}

}  // namespace

std::vector<DeviceCase> device_cases() {
  return {{"simulated", DeviceKind::simulated,
           [] { return make_simulated({.seed = 7, .slowdowns = {}, .fails_at_step = {}}); }},
          {"reference", DeviceKind::reference, [] { return make_reference_device(7); }}};
}

}  // namespace stepgate
