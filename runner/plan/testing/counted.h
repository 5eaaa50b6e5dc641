// SPDX-License-Identifier: MIT
// For tests only: one count of a plan by itself.
#pragma once

#include "plan/count/facts_of.h"

namespace stepgate {

inline std::optional<double> counted(const StepPlan& plan, Metric metric) {
  return facts_of(plan).count(metric);
}

}  // namespace stepgate
