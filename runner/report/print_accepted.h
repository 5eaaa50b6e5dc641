// SPDX-License-Identifier: MIT
// What became of a run that was to be stored.
#pragma once

#include <iosfwd>
#include <string>

#include "judge/baseline.h"
#include "judge/verdict.h"

namespace stepgate {

// Where the last run of the baseline lies now, and each variant's time beside its anchor's.
void print_accepted(std::ostream&, const Baseline&, const DeviceIdentity&);

// "a: not accepted: ..."
void print_not_accepted(std::ostream&, const std::string& scenario, const std::string& reason);

}  // namespace stepgate
