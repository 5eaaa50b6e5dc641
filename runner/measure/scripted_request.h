// SPDX-License-Identifier: MIT
// For tests only: what measure is asked for on a scripted device, whose clock is the script's.
#pragma once

#include "measure/measure.h"
#include "measure/scripted_device.h"

namespace stepgate {

inline StepTime always(std::chrono::nanoseconds time) {
  return [time](const std::string&, std::int64_t) { return time; };
}

// So many rounds, whatever they show.
inline MeasureRequest request_for(Script& script, std::int64_t rounds) {
  MeasureRequest request;
  request.knobs.rounds = rounds;
  request.seed = 42;
  request.clock = [&script] { return script.now; };
  request.enough = [](const Measurement&) { return false; };
  return request;
}

}  // namespace stepgate
