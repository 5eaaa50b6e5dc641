// SPDX-License-Identifier: MIT
// Callbacks that report the current scenario, to show progress to a waiting user. The line itself
// shows nothing.
#pragma once

#include <functional>
#include <string>

#include "judge/judge.h"
#include "line/planned.h"
#include "measure/rounds/measure.h"
#include "scenario/scenario.h"

namespace stepgate {

// By default the callbacks do nothing.
struct ProgressSink {
  std::function<void(const Scenario&)> tracing = [](const Scenario&) {};
  // Called once a scenario is traced, or has a reason why it is not.
  std::function<void(const Planned&, const Traced&)> traced = [](const Planned&, const Traced&) {};
  // Called before a program of the user is started, with its command line, secrets masked.
  std::function<void(const Scenario&, const std::string&)> starting = [](const Scenario&,
                                                                         const std::string&) {};
  // Called before the first round with the scenario's expected cost, if it is known.
  std::function<void(const Scenario&, const Forecast&)> forecast = [](const Scenario&,
                                                                      const Forecast&) {};
  std::function<void(const Scenario&, const Progress&)> measuring = [](const Scenario&,
                                                                       const Progress&) {};
};

}  // namespace stepgate
