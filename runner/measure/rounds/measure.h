// SPDX-License-Identifier: MIT
// Runs the variants of a scenario interleaved until the caller says that it is enough, or the limit
// of rounds or seconds is reached. Decides nothing about the variants, except that they must
// compute the same step; prints nothing.
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

// After the warm-up (0 rounds) and after every round.
struct Progress {
  std::int64_t rounds = 0;
  std::chrono::nanoseconds spent{0};
  ExpectedCost expected;
};

struct MeasureRequest {
  MeasureKnobs knobs;
  std::uint64_t scenario_fingerprint = 0;
  std::uint64_t seed = 0;  // of the orders
  // With fewer rounds no assertion can pass: a budget without room for these is not begun.
  std::int64_t fewest_rounds = 5;
  bool stretches = false;  // it takes them all the same, for as long as they take
  Enough enough;
  std::function<void(const Progress&)> progress;  // may be empty
};

// Loads the subject with that index into a slot of the runner. Throws DeviceError.
using LoadSubject =
    std::function<std::unique_ptr<LoadedStep>(std::size_t subject, int slot, const LoadDraw&)>;

// Loads every subject, warms up, and runs rounds. A device without a notion of time yields none,
// but its losses and gradients are compared. Ends early when variants are not the same step, or a
// signal asks for an end. At least one subject. Throws DeviceError.
Measurement measure(StepRunner&, std::span<const Subject>, const LoadSubject&,
                    const MeasureRequest&);

}  // namespace stepgate
