// SPDX-License-Identifier: MIT
// Tests the noise of the simulated machine against its settings, and the faults that a test plants
// in it.
#include <gtest/gtest.h>

#include "device/simulated/round_numbers.h"

namespace stepgate {
namespace {

using std::chrono::nanoseconds;

TEST(SimulatedDevice, GivesTheSameTimesForTheSameSeedOnly) {
  DeviceProfile noisy = round_profile();
  noisy.noise = {.within_rounds = 0.02,
                 .between_rounds = 0.01,
                 .spike_probability = 0.01,
                 .spike_nanoseconds = 50000};
  const nanoseconds first = step_time(spinning(10, 50), noisy, {.seed = 7});
  EXPECT_EQ(first, step_time(spinning(10, 50), noisy, {.seed = 7}));
  EXPECT_NE(first, step_time(spinning(10, 50), noisy, {.seed = 8}));
}

TEST(SimulatedDevice, KeepsWhatASlotCostsAndDrawsWhatALoadCosts) {
  const std::vector<StepPlan> plans = plans_of(spinning(10, 50));
  const auto times = [&](const NoiseCosts& noise) {
    DeviceProfile profile = round_profile();
    profile.noise = noise;
    const auto device = make_simulated_device(profile, {.seed = 3});
    std::vector<nanoseconds> elapsed;
    for (const int slot : {0, 1, 0, 1}) {
      elapsed.push_back(*device->load_into(slot, plans.front())->run({.steps = 20}).elapsed);
    }
    return elapsed;
  };
  const auto by_slot = times({.between_slots = 0.05});
  EXPECT_EQ(by_slot[0], by_slot[2]);
  EXPECT_EQ(by_slot[1], by_slot[3]);
  EXPECT_NE(by_slot[0], by_slot[1]);
  const auto by_load = times({.between_loads = 0.05});
  EXPECT_NE(by_load[0], by_load[2]);
  EXPECT_NE(by_load[1], by_load[3]);
}

TEST(SimulatedDevice, ShowsAPlantedSlowdownInItsVariantOnly) {
  const SimulatedSettings planted{.seed = 0, .slowdowns = {{.variant = "only", .factor = 1.05}}};
  const SimulatedSettings elsewhere{.seed = 0, .slowdowns = {{.variant = "other", .factor = 1.05}}};
  const auto plain = static_cast<double>(step_time(spinning(10, 50), round_profile()).count());
  EXPECT_NEAR(
      static_cast<double>(step_time(spinning(10, 50), round_profile(), planted).count()) / plain,
      1.05, 0.001);
  EXPECT_EQ(static_cast<double>(step_time(spinning(10, 50), round_profile(), elsewhere).count()),
            plain);
}

TEST(SimulatedDevice, ReportsAPlantedClockInItsVariantOnlyAndKeepsItsTimes) {
  const std::vector<StepPlan> plans = plans_of(spinning(3, 10));
  const auto result_with = [&](SimulatedSettings settings) {
    const auto device = make_simulated_device(round_profile(), std::move(settings));
    return device->load(plans.front())->run({.wash_out_steps = 2, .steps = 10});
  };
  const StepResult plain = result_with({.seed = 1});
  EXPECT_FALSE(plain.sm_clock_hertz);
  EXPECT_FALSE(result_with({.seed = 1, .clocks = {{"other", 1.5e9}}}).sm_clock_hertz);
  const StepResult clocked = result_with({.seed = 1, .clocks = {{"only", 1.5e9}}});
  EXPECT_EQ(clocked.sm_clock_hertz, 1.5e9);
  EXPECT_EQ(clocked.elapsed, plain.elapsed);
}

TEST(SimulatedDevice, ReadsThePlantedEnvironmentFromItsReadingOn) {
  EnvironmentReading cool;
  cool.temperature_celsius = 40;
  EnvironmentReading hot;
  hot.temperature_celsius = 90;
  const auto device =
      make_simulated_device(round_profile(), {.environment = {{1, cool}, {3, hot}}});
  EXPECT_FALSE(device->read_environment());
  for (const double celsius : {40.0, 40.0, 90.0, 90.0}) {
    EXPECT_EQ(device->read_environment().value().temperature_celsius, celsius);
  }
}

}  // namespace
}  // namespace stepgate
