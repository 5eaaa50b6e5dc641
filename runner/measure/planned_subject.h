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

// Returns Subject::loader_turn: of w steps with w workers that began together one waits, where the
// loader makes batches ahead.
std::int64_t loader_turn(const LoaderKnobs&);

// Measures the plans as subjects. The device loads each one and adds its libraries. Needs at least
// one plan. Throws DeviceError.
Measurement measure(Device&, std::span<const PlannedStep>, const MeasureRequest&);

}  // namespace stepgate
