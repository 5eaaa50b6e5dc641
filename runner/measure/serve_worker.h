// SPDX-License-Identifier: MIT
// stepgate's own side of a duel: runs plans on a device as the worker protocol asks. Who asks, and
// what becomes of the times, is not known here.
#pragma once

#include <iosfwd>
#include <span>
#include <string>

#include "device/device.h"
#include "plan/step_plan.h"

namespace stepgate {

// "scenario/variant".
std::string work_name(const StepPlan&);

// Answers requests line by line until `quit` or the end of the input. A request that cannot be
// carried out is answered with an error; DeviceError is thrown, since a failed device has no
// further answers. `version` is that of this program.
void serve_worker(std::istream& in, std::ostream& out, Device&, std::span<const StepPlan>,
                  const std::string& version);

}  // namespace stepgate
