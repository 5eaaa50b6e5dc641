// SPDX-License-Identifier: MIT
// Finds the value of a knob that gives one metric of a trace the value that a scenario wants, on
// the device that is there. The caller plans with the value.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "measure/trace/trace_rounds.h"
#include "measure/trace/traced.h"
#include "plan/planned_step.h"
#include "scenario/scenario.h"

namespace stepgate {

// The plans of all variants with the knob at a value, as `--set` takes it. Throws RequestError
// where no plan has that value.
using PlansWith = std::function<std::vector<PlannedStep>(const std::string& value)>;

struct CalibrationRange {
  double start = 1;
  double least = 1;
  double most = 1;
  double multiple_of = 1;  // 0: any number
};

// Where to search: the knob's own range, from the value that the variant has in the file on.
CalibrationRange calibration_range(const Calibration&, const Scenario&,
                                   std::span<const PlannedStep> as_written);

// Traces each trial in a few rounds and takes the median. Throws DeviceError.
Calibrated calibrate(Device&, const Calibration&, const CalibrationRange&, const PlansWith&,
                     const TraceRequest&);

}  // namespace stepgate
