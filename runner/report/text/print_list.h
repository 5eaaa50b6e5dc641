// SPDX-License-Identifier: MIT
// Prints short lines about scenarios, devices, stored runs and the cost of a run.
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
#include "report/text/table.h"
#include "scenario/scenario.h"

namespace stepgate {

// Prints name, tags, claim, the five knob tables of its steps, variants and the names of
// assertions.
void print_listed(std::ostream&, const Scenario&);

// "scenarios/a.toml: 3 variants, 5 assertions", then a line for each warning.
void print_checked(std::ostream&, const Scenario&, std::span<const Diagnostic> warnings);
void print_warnings(std::ostream&, std::span<const Diagnostic> warnings);

void print_devices(std::ostream&, std::span<const DeviceRow>);

// Prints the file of the baseline's last run, and each variant's time beside its anchor's time.
void print_accepted(std::ostream&, const Baseline&, const DeviceIdentity&);

// Counts the results of several runs of `accept`.
struct AcceptedRuns {
  std::int64_t asked = 0;
  std::int64_t stored = 0;
  std::int64_t refused = 0;
  std::int64_t failed = 0;
};
// "99 runs asked for: 96 stored, 3 not accepted". Also counts failed runs, and runs cut short by a
// failure or a signal.
void print_accepted_runs(std::ostream&, const AcceptedRuns&);

// "a: not accepted: ..."
void print_not_accepted(std::ostream&, const std::string& scenario, const std::string& reason);

// Prints the cost of a verdict before the first round: the minimum, and the cost for an assertion
// that is one percent from its limit.
void print_forecast(std::ostream&, const std::string& scenario, const Forecast&);

enum class Traces { measured, simulated };
// "a.no_waits fails by its trace: 3; it must be 0", of a scenario that is not decided yet.
void print_early(std::ostream&, const std::string& scenario, const AssertionVerdict&, Traces,
                 Style);

// Prints one line with the parts of a run's wall time, in seconds; `whole` is the total.
void print_wall_times(std::ostream&, const WallTimes&, std::chrono::nanoseconds whole);

}  // namespace stepgate
