// SPDX-License-Identifier: MIT
// Hears which scenario is at work, for somebody who waits. The line shows nothing itself.
#pragma once

#include <functional>

#include "judge/judge.h"
#include "measure/rounds/measure.h"
#include "scenario/scenario.h"

namespace stepgate {

// Hears nothing by default.
struct ProgressSink {
  std::function<void(const Scenario&)> tracing = [](const Scenario&) {};
  // Hears before the first round what the scenario will cost, where that can be said.
  std::function<void(const Scenario&, const Forecast&)> forecast = [](const Scenario&,
                                                                      const Forecast&) {};
  std::function<void(const Scenario&, const Progress&)> measuring = [](const Scenario&,
                                                                       const Progress&) {};
};

}  // namespace stepgate
