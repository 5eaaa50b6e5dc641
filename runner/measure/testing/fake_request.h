// SPDX-License-Identifier: MIT
// For tests only: requests to measure on a fake device.
#pragma once

#include "measure/testing/fake_device.h"

namespace stepgate {

inline StepTime always(std::chrono::nanoseconds time) {
  return [time](const std::string&, std::int64_t) { return time; };
}

// Requests this number of rounds with long segments, whatever the results.
inline MeasureRequest request_for(std::int64_t rounds) {
  MeasureRequest request;
  request.knobs.rounds = rounds;
  request.knobs.interleave = Interleave::segments;
  request.seed = 42;
  request.enough = [](const Measurement&) { return false; };
  return request;
}

}  // namespace stepgate
