// SPDX-License-Identifier: MIT
// A device without hardware: a model of host thread, compute engine and copy engines in whole
// nanoseconds, with the costs of a profile and seeded noise. The same seed gives the same times. It
// computes no numbers, so it has no losses.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "device/device.h"
#include "device/profile.h"
#include "plan/derive/inject.h"

namespace stepgate {

// A slowdown that a test plants to see whether the gate notices.
struct PlantedSlowdown {
  std::string variant;
  double factor = 1;                  // of the time of every device operation
  std::int64_t host_nanoseconds = 0;  // once a step
};

// The clock that the steps of a variant report. It does not change their times.
struct PlantedClock {
  std::string variant;
  double sm_clock_hertz = 0;
};

// The readings of the environment from number `from_reading` on, counted from 0.
struct PlantedEnvironment {
  std::int64_t from_reading = 0;
  EnvironmentReading reading;
};

// A fault that every step of a variant has although its plan does not: a broken runner would behave
// like this, and only a trace shows it.
struct PlantedFault {
  std::string variant;
  InjectionKind kind = InjectionKind::extra_wait;
};

struct SimulatedSettings {
  std::uint64_t seed = 0;  // seed of the noise
  // A simulation that takes longer on this machine throws DeviceError: nothing else bounds what a
  // scenario may ask of it. The suite's scenarios take a second.
  std::chrono::nanoseconds most_wall_time = std::chrono::minutes(2);
  std::vector<PlantedSlowdown> slowdowns = {};
  std::optional<std::int64_t> fails_at_step = {};  // throws DeviceError at this step
  bool fails_for_good = false;  // then throws DeviceLost instead, and at every later call
  std::vector<PlantedClock> clocks = {};
  std::vector<PlantedEnvironment> environment =
      {};  // ascending; empty: the device has no environment
  std::vector<PlantedFault> faults = {};
};

std::unique_ptr<Device> make_simulated_device(DeviceProfile, SimulatedSettings = {});

}  // namespace stepgate
