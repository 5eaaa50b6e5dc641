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
#include "measure/traced.h"

namespace stepgate {

// One uninterrupted run of scored steps of one variant.
struct Segment {
  int variant = 0;              // index into Measurement::variants
  int slot = 0;                 // where it was loaded
  std::int64_t first_step = 0;  // number of the first scored step
  std::int64_t steps = 0;
  std::chrono::nanoseconds elapsed{0};
  std::optional<std::chrono::nanoseconds> host_busy;
  std::optional<double> sm_clock_hertz = {};  // mean over the scored steps
  std::vector<std::chrono::nanoseconds> step_times;
};

// As many passes as there are variants. Each pass loads all variants anew; over the passes every
// variant is in every slot once and runs in every place of the order once, so that what sticks to a
// slot, to being loaded first or to a steady drift cancels. A pass runs its order once or, mirrored
// and back, more often. Of two variants a round is ABBA with the slots swapped in the middle.
struct Round {
  std::vector<Segment> segments;
  std::optional<EnvironmentReading> environment_after = {};  // read when the last one had ended
};

// Does the length of a segment matter? The ratios of the variants' times, compared between segments
// of some length and of four times that.
struct Pilot {
  std::int64_t segment_steps = 0;  // the length that was chosen
  double disagreement = 0;    // largest change of a log-ratio between the two lengths, by variant
  double standard_error = 0;  // of that
  bool agrees = true;    // false: even the longest segments that the scenario allows still disagree
  double deviation = 0;  // largest standard deviation of a log-ratio over one order
  std::int64_t orders_per_pass = 1;  // that was chosen
};

// What a run will cost, known once the variants are warm and before the first round.
struct ExpectedCost {
  std::chrono::nanoseconds round{0};
  std::int64_t fewest_rounds = 0;  // with fewer no sentence can be decided
  std::int64_t most_rounds = 0;    // that fit into rounds and seconds
  double deviation = 0;  // of a round's log-ratio of two variants, as the pilot lets expect
};

struct VariantSubject {
  std::string name;
  double batch_size = 0;  // samples a step, on average
  // What its steps depend on besides the device, and which kernels they got: device.h. A choice
  // that a later load made otherwise stands behind the first.
  std::vector<DeviceKey> libraries = {};
  std::vector<KernelChoice> choices = {};
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
  // No device took part, and none is needed: what plans count is all that there is.
  bool planned_only = false;
  DeviceIdentity device;
  std::string scenario;
  std::uint64_t scenario_fingerprint = 0;
  std::uint64_t seed = 0;
  std::vector<VariantSubject> variants;
  std::optional<EnvironmentReading> environment_before = {};  // read before the first round
  std::vector<Round> rounds;
  std::int64_t wash_out_steps = 0;
  std::int64_t warmup_steps = 0;  // run of each variant before the first round
  std::int64_t settle_steps = 0;  // run of each variant after every load, not scored
  Pilot pilot;
  ExpectedCost expected;
  bool steady =
      true;  // false: the warm-up ended because it had to, with the step times still drifting
  std::chrono::nanoseconds device_time{0};  // of all steps run, warm-up and wash-out included
  std::chrono::nanoseconds wall_time{0};
  std::chrono::nanoseconds device_time_before_rounds{0};  // of both, for warm-up and pilot
  std::chrono::nanoseconds wall_time_before_rounds{0};
  bool budget_spent = false;    // ended by the budget, not by enough evidence
  bool budget_refused = false;  // not even the fewest rounds fit: none was run
  std::optional<LossDisagreement> disagreement;
  std::optional<Traced> traced = {};  // absent when nobody asked
};

// Asked after every round: is there enough evidence? `judge` makes it, `main` hands it over.
using Enough = std::function<bool(const Measurement&)>;

}  // namespace stepgate
