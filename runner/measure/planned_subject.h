// SPDX-License-Identifier: MIT
// A planned step as a subject, and the measuring of plans on a device that loads them.
#pragma once

#include <span>
#include <vector>

#include "measure/rounds/measure.h"
#include "plan/planned_step.h"

namespace stepgate {

// All that a plan knows of itself: everything but the libraries of a device.
Subject subject_of(const PlannedStep&);
std::vector<Subject> subjects_of(std::span<const PlannedStep>);

// The plans as subjects, each loaded by the device, which knows their libraries. At least one plan.
// Throws DeviceError.
Measurement measure(Device&, std::span<const PlannedStep>, const MeasureRequest&);

}  // namespace stepgate
