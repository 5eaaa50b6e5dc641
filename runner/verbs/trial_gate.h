// SPDX-License-Identifier: MIT
// The gate that a process of `certify` is asked for: everybody who takes part in it, a rank too,
// makes the same of the same arguments.
#pragma once

#include <string>
#include <vector>

#include "history/certificate/certification.h"
#include "verbs/arguments.h"
#include "verbs/planned.h"

namespace stepgate {

bool asks_for_trial_gate(const Arguments&);

// The gate for the first scenario, as it is planned. Throws RequestError.
TrialGate trial_gate_of(const std::vector<Planned>&, const Arguments&);

// The options that make it the same gate.
std::vector<std::string> options_of_trial_gate(const Arguments&);

}  // namespace stepgate
