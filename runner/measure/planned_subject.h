// SPDX-License-Identifier: MIT
// Makes a subject from a planned step, and measures plans on a device that loads them.
#pragma once

#include <span>
#include <vector>

#include "measure/rounds/measure.h"
#include "plan/planned_step.h"

namespace stepgate {

// Returns everything that the plan alone determines. Only the libraries are missing, since the
// device knows them.
Subject subject_of(const PlannedStep&);
std::vector<Subject> subjects_of(std::span<const PlannedStep>);

// Measures the plans as subjects. The device loads each one and adds its libraries. Needs at least
// one plan. Throws DeviceError.
Measurement measure(Device&, std::span<const PlannedStep>, const MeasureRequest&);

}  // namespace stepgate
