// SPDX-License-Identifier: MIT
// Short lines about scenarios, devices, stored runs and what a run costs.
#pragma once

#include <chrono>
#include <cstdint>
#include <iosfwd>
#include <span>
#include <string>

#include "device/open_device.h"
#include "judge/judge.h"
#include "judge/stored/baseline.h"
#include "judge/verdict/verdict.h"
#include "measure/wall_times.h"
#include "scenario/scenario.h"

namespace stepgate {

// Name, tags, claim, the five things of its steps, variants and the names of the assertions.
void print_listed(std::ostream&, const Scenario&);

// "scenarios/a.toml: 3 variants, 5 assertions", then a line for each warning.
void print_checked(std::ostream&, const Scenario&, std::span<const Diagnostic> warnings);

void print_devices(std::ostream&, std::span<const DeviceRow>);

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
// "99 runs asked for: 96 stored, 3 not accepted"; failed runs, and runs that a failure or a signal
// cut short, are named too.
void print_accepted_runs(std::ostream&, const AcceptedRuns&);

// "a: not accepted: ..."
void print_not_accepted(std::ostream&, const std::string& scenario, const std::string& reason);

// Before the first round: what a verdict will cost, at least and for a line that is a percent from
// its limit.
void print_forecast(std::ostream&, const std::string& scenario, const Forecast&);

// One line: where the wall time of a run went that took so long, in seconds, by the parts that it
// has.
void print_wall_times(std::ostream&, const WallTimes&, std::chrono::nanoseconds whole);

}  // namespace stepgate
