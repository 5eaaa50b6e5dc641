// SPDX-License-Identifier: MIT
// Finds the value of a knob that makes one metric match the scenario's target, on the present
// device. The caller makes the plans for a value.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "measure/trace/trace_rounds.h"
#include "measure/trace/traced.h"
#include "plan/planned_step.h"
#include "scenario/scenario.h"

namespace stepgate {

// Returns the plans of all variants with the knob at this value, written as for `--set`. Throws
// RequestError where the value allows no plan.
using PlansWith = std::function<std::vector<PlannedStep>(const std::string& value)>;

struct CalibrationRange {
  double start = 1;
  double least = 1;
  double most = 1;
  double multiple_of = 1;  // 0: any number
};

// Returns the search range: the range of the knob, starting from the variant's value in the file.
CalibrationRange calibration_range(const Calibration&, const Scenario&,
                                   std::span<const PlannedStep> as_written);

// Measures each trial in a few rounds and takes the median; `as_written` has the plans with the
// file's own value. Throws DeviceError.
Calibrated calibrate(Device&, const Calibration&, const CalibrationRange&, const PlansWith&,
                     std::span<const PlannedStep> as_written, const TraceRequest&);

}  // namespace stepgate
