// SPDX-License-Identifier: MIT
// Says what became of a run that was to be stored.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <string>

#include "judge/stored/baseline.h"
#include "judge/verdict/verdict.h"

namespace stepgate {

// Says where the last run of the baseline lies now, and each variant's time beside that of its
// anchor.
void print_accepted(std::ostream&, const Baseline&, const DeviceIdentity&);

// Counts of what became of several runs.
struct AcceptedRuns {
  std::int64_t asked = 0;
  std::int64_t stored = 0;
  std::int64_t refused = 0;
  std::int64_t failed = 0;
};
// "99 runs asked for: 96 stored, 3 not accepted"; those that failed, and those that a failure or a
// signal kept from ending, are named too.
void print_accepted_runs(std::ostream&, const AcceptedRuns&);

// "a: not accepted: ..."
void print_not_accepted(std::ostream&, const std::string& scenario, const std::string& reason);

}  // namespace stepgate
