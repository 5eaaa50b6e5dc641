// SPDX-License-Identifier: MIT
// Observes which operation the host is issuing during scored steps. A timed run has no observer;
// checking for one costs it one comparison per operation.
#pragma once

#include <cstdint>

#include "plan/step_plan.h"

namespace stepgate {

class StepObserver {
 public:
  virtual ~StepObserver() = default;
  virtual void begin_run(const StepPlan&) {}
  // Work until end() belongs to this operation of the plan (-1: the runner itself), issued at
  // `step` for step `acts_for`.
  virtual void begin(int operation, std::int64_t step, std::int64_t acts_for) = 0;
  virtual void end() = 0;
  // Called when all work of the run is done.
  virtual void end_run() {}
};

// A scope that lasts while the host issues one operation.
class Observed {
 public:
  Observed(StepObserver* observer, int operation, std::int64_t step, std::int64_t acts_for)
      : observer_(observer) {
    if (observer_) observer_->begin(operation, step, acts_for);
  }
  ~Observed() {
    if (observer_) observer_->end();
  }
  Observed(const Observed&) = delete;
  Observed& operator=(const Observed&) = delete;

 private:
  StepObserver* observer_;
};

}  // namespace stepgate
