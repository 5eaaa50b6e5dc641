// SPDX-License-Identifier: MIT
#include "device/cuda/cupti/span_recorder.h"

#include "device/cuda/cupti/cupti.h"

namespace stepgate {

void SpanRecorder::begin(int operation, std::int64_t step, std::int64_t acts_for) {
  spans_.push_back(
      {.operation = operation, .step = step, .acts_for = acts_for, .begin = trace_now()});
}

void SpanRecorder::end() {
  spans_.back().end = trace_now();
}

}  // namespace stepgate
