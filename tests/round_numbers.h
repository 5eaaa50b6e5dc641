// SPDX-License-Identifier: MIT
// For tests only: a device with round costs and the noise that a test needs.
#pragma once

#include "device/profile.h"

namespace stepgate {

// The noise of a quiet GPU, for most tests.
inline constexpr NoiseCosts usual_noise{
    .within_rounds = 0.003, .between_loads = 0.001, .between_slots = 0.002};

inline DeviceProfile profile_of_round_numbers(const NoiseCosts& noise) {
  DeviceProfile profile =
      read_profile(STEPGATE_SOURCE_DIR "/tests/baselines/round-numbers/device.toml");
  profile.noise = noise;
  return profile;
}

}  // namespace stepgate
