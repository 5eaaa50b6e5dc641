// SPDX-License-Identifier: MIT
// Writes down when the host issued what, by the clock of the trace.
#pragma once

#include <vector>

#include "device/cuda/step_observer.h"
#include "device/trace.h"

namespace stepgate {

class SpanRecorder : public StepObserver {
 public:
  // Room for that many, so that recording does not allocate.
  explicit SpanRecorder(std::size_t spans) { spans_.reserve(spans); }

  void begin(int operation, std::int64_t step, std::int64_t acts_for) override;
  void end() override;

  std::vector<HostSpan> take() { return std::move(spans_); }

 private:
  std::vector<HostSpan> spans_;
};

}  // namespace stepgate
