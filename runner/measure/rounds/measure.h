// SPDX-License-Identifier: MIT
// Runs the variants of a scenario interleaved until the caller has enough evidence, or the limit of
// rounds or seconds is reached. Draws no conclusion about the variants, except that they must
// compute the same step. Prints nothing.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>

#include "measure/rounds/measurement.h"
#include "measure/subject.h"
#include "scenario/scenario.h"

namespace stepgate {

// Reported after the warm-up (0 rounds) and after every round.
struct Progress {
  std::int64_t rounds = 0;
  std::chrono::nanoseconds spent{0};
  ExpectedCost expected;
};

struct MeasureRequest {
  MeasureKnobs knobs;
  std::uint64_t scenario_fingerprint = 0;
  std::uint64_t seed = 0;  // of the random orders
  // No assertion can pass with fewer rounds. Measuring does not begin where the budget has no room
  // for so many.
  std::int64_t fewest_rounds = 5;
  bool stretches = false;  // take fewest_rounds even if they exceed max_seconds
  Enough enough;
  std::function<void(const Progress&)> progress;  // may be empty
};

// Loads the subject with that index into a slot of the runner. Throws DeviceError.
using LoadSubject =
    std::function<std::unique_ptr<LoadedStep>(std::size_t subject, int slot, const LoadDraw&)>;

// Loads every subject, warms up, and runs rounds. A device without a clock runs no rounds, but its
// losses and gradients are compared. Ends early when variants are not the same step, or on a
// signal. Needs at least one subject. Throws DeviceError.
Measurement measure(StepRunner&, std::span<const Subject>, const LoadSubject&,
                    const MeasureRequest&);

}  // namespace stepgate
