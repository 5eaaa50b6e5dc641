// SPDX-License-Identifier: MIT
// The step of a recorded program as a scenario, whose step does as much: the same launches, copies
// and waits, with kernels that spin as long as those of the trace ran.
#pragma once

#include <string>

#include "measure/trace/traced.h"
#include "program/count_steps.h"

namespace stepgate {

// The text of the scenario. It has an assertion for every count that its step has exactly, and one
// for the time of a step, within 10 %. Comments name the counts that no knob can make, with those
// of the trace. Throws RequestError where the trace has no counted step with a kernel, or fewer
// launches a step than a step of stepgate has.
std::string synthetic_scenario(const CountedProcess&, const TracedStep&);

}  // namespace stepgate
