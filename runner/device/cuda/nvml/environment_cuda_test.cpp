// SPDX-License-Identifier: MIT
// Tests the environment of the local GPU: it can be read, and reading it between rounds does not
// change later times. Fails, never skips, where there is no GPU.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <iostream>
#include <random>

#include "device/cuda/cuda_device.h"
#include "plan/compose/build_step_plan.h"

namespace stepgate {
namespace {

StepPlan mlp_plan(std::int64_t hidden, std::int64_t batch) {
  Scenario scenario;
  Knobs knobs;
  knobs.transfer.host = HostMemory::resident;
  knobs.model.layers = 4;
  knobs.model.hidden = hidden;
  knobs.model.dtype = DType::tf32;
  knobs.batch.size = batch;
  scenario.variants.push_back({"only", knobs, {}});
  return build_step_plans(scenario, 1).front();
}

std::optional<double> highest_clock_hertz(const DeviceIdentity& device) {
  for (const DeviceKey& key : device.keys) {
    if (key.name == "highest sm clock") return 1e6 * std::atof(key.value.c_str());
  }
  return std::nullopt;
}

TEST(CudaEnvironment, IsReadOrSaysWhyNot) {
  const auto device = make_cuda_device();
  const EnvironmentReading reading = device->read_environment().value();
  if (!reading.unavailable.empty()) {
    std::cout << "not known here: " << reading.unavailable << '\n';
    EXPECT_FALSE(reading.sm_clock_hertz || reading.processes);
    return;
  }
  EXPECT_TRUE(reading.sm_clock_hertz || reading.temperature_celsius || reading.power_watts);
  if (reading.sm_clock_hertz) {
    EXPECT_GT(*reading.sm_clock_hertz, 1e8);
    EXPECT_LT(*reading.sm_clock_hertz, 1e10);
  }
  if (reading.temperature_celsius) {
    EXPECT_GT(*reading.temperature_celsius, 5);
    EXPECT_LT(*reading.temperature_celsius, 120);
  }
  for (const DeviceKey& key : device->identity().keys) {
    std::cout << key.name << ": " << key.value << '\n';
  }
}

TEST(CudaEnvironment, KnowsTheClockOfTheScoredSteps) {
  const auto device = make_cuda_device();
  const StepPlan plan = mlp_plan(1024, 1024);
  const auto step = device->load(plan);
  (void)step->run({.wash_out_steps = 0, .steps = 200, .tensors = false});
  const StepResult result = step->run({.wash_out_steps = 20, .steps = 200, .tensors = false});
  ASSERT_TRUE(result.sm_clock_hertz);
  std::cout << "SM clock from the steps' own stamps: " << *result.sm_clock_hertz / 1e6 << " MHz\n";
  EXPECT_GT(*result.sm_clock_hertz, 2e8);
  const auto highest = highest_clock_hertz(device->identity());
  // The clock of the stamps may have a resolution of only one microsecond.
  EXPECT_LT(*result.sm_clock_hertz, highest.value_or(1e10) * 1.01);
}

// Mean and standard error of log(time after a reading / time without one), over pairs in a random
// order.
struct Effect {
  double mean = 0;
  double standard_error = 0;
};

Effect effect_of_reading(Device& device, LoadedStep& step, const Observe& observe, int pairs,
                         std::uint64_t seed) {
  std::mt19937_64 random(seed);
  const auto log_time = [&](bool reads) {
    if (reads) (void)device.read_environment();
    return std::log(static_cast<double>(step.run(observe).elapsed->count()));
  };
  for (int warm_up = 0; warm_up < 20; ++warm_up) (void)log_time(false);
  std::vector<double> contrasts;
  for (int pair = 0; pair < pairs; ++pair) {
    // The order is mirrored, so that drift cancels.
    const bool first = random() % 2 == 0;
    const double a = log_time(first), b = log_time(!first), c = log_time(!first),
                 d = log_time(first);
    contrasts.push_back((first ? 0.5 : -0.5) * (a - b - c + d));
  }
  Effect effect;
  for (const double contrast : contrasts) effect.mean += contrast / pairs;
  double squares = 0;
  for (const double contrast : contrasts) squares += std::pow(contrast - effect.mean, 2);
  effect.standard_error = std::sqrt(squares / (pairs - 1.0) / pairs);
  return effect;
}

TEST(CudaEnvironment, AReadingDoesNotChangeTheSegmentAfterIt) {
  const std::uint64_t seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  const auto device = make_cuda_device();
  for (const auto& [hidden, batch] : {std::pair{1024, 64}, std::pair{1024, 1024}}) {
    const StepPlan plan = mlp_plan(hidden, batch);
    const auto step = device->load(plan);
    const Observe observe{.wash_out_steps = 20, .steps = 100, .tensors = false};
    const Effect effect = effect_of_reading(*device, *step, observe, 60, seed);
    std::cout << hidden << " x " << batch << ": a reading changes the time of the next segment by "
              << 100 * effect.mean << " % (standard error " << 100 * effect.standard_error
              << " %)\n";
    // A difference of more than four standard errors and a tenth of a percent counts as an effect.
    EXPECT_LT(std::abs(effect.mean), 4 * effect.standard_error + 0.001);
    // The noise must be small enough that an effect would be found.
    EXPECT_LT(effect.standard_error, batch == 64 ? 0.02 : 0.002);
  }
}

}  // namespace
}  // namespace stepgate
