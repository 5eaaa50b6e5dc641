// SPDX-License-Identifier: MIT
// What was measured: every segment of every round, in the order it ran. Enough for a third party to
// recompute the verdict; nothing is decided here.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "device/device.h"

namespace stepgate {

// One uninterrupted run of scored steps of one variant.
struct Segment {
  int variant = 0;              // index into Measurement::variants
  std::int64_t first_step = 0;  // number of the first scored step
  std::int64_t steps = 0;
  std::chrono::nanoseconds elapsed{0};
  std::optional<std::chrono::nanoseconds> host_busy;
  std::optional<double> sm_clock_hertz = {};  // mean over the scored steps
  std::vector<std::chrono::nanoseconds> step_times;
};

// One superblock: every variant once in a random order, then once more in the mirrored order.
struct Round {
  std::vector<Segment> segments;
  std::optional<EnvironmentReading> environment_after = {};  // read when the last one had ended
};

struct VariantSubject {
  std::string name;
  std::int64_t batch_size = 0;  // samples a step
};

// The steps of two variants that should have computed the same loss and did not.
struct LossDisagreement {
  int variant = 0;
  int against = 0;  // the first variant of the same arithmetic
  std::int64_t step = 0;
  double loss = 0;
  double expected = 0;
  double bound = 0;  // relative
};

struct Measurement {
  DeviceIdentity device;
  std::string scenario;
  std::uint64_t scenario_fingerprint = 0;
  std::uint64_t seed = 0;
  std::vector<VariantSubject> variants;
  std::optional<EnvironmentReading> environment_before = {};  // read before the first round
  std::vector<Round> rounds;
  std::int64_t wash_out_steps = 0;
  std::int64_t warmup_steps = 0;  // run of each variant before the first round
  bool steady =
      true;  // false: the warm-up ended because it had to, with the step times still drifting
  std::chrono::nanoseconds device_time{0};  // of all steps run, warm-up and wash-out included
  std::chrono::nanoseconds wall_time{0};
  bool budget_spent = false;  // ended by the budget, not by enough evidence
  std::optional<LossDisagreement> disagreement;
};

// Asked after every round: is there enough evidence? `judge` makes it, `main` hands it over.
using Enough = std::function<bool(const Measurement&)>;

}  // namespace stepgate
