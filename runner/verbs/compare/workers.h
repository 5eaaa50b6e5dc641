// SPDX-License-Identifier: MIT
// Starts the two programs of a gate as worker processes.
#pragma once

#include <chrono>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/process/child.h"
#include "compare/gate/judge_comparison.h"
#include "compare/gate/judge_gate.h"
#include "compare/launches/comparison.h"
#include "scenario/scenario.h"
#include "verbs/arguments.h"

namespace stepgate {

std::chrono::nanoseconds of_seconds(double seconds);

// The path of a program; a name without a slash is in the working directory.
std::string program_path(const std::string& given);

// Throws RequestError where there is no such program; `option` named it.
void check_program(const std::string& option, const std::string& given);

// Checks the name of the device, so that a mistyped one is not reported as a program's failure. The
// programs find out whether there is a GPU. Throws RequestError.
void check_device_name(const DeviceChoice&);

// Throws RequestError for two scenarios with the same name, since a gate identifies them by name.
void refuse_namesakes(std::span<const Scenario>);

// Makes `<program> --baselines B VERB ... -- FILES`, with device, knobs, ranks and time limit as
// given, and `more`. Every command line of another stepgate is made here.
Command program_command(const Arguments&, const std::string& program, const std::string& verb,
                        const std::vector<std::string>& more = {});

// The options of the knobs that a side alone has.
Command own_knobs(const Arguments&, ComparisonSide);

// The worker of a side: its command line as given, which gets no options from us, or its program
// with the scenarios, BASE's calibrated values and `more`.
Command worker_command(const Arguments&, ComparisonSide, std::vector<std::string> more = {});

// Returns whether BASE and HEAD run the same bytes in the same environment; for command lines,
// whatever their arguments are.
bool run_same_program(const Arguments&);

// Returns the environment of a side: the variables that workers see, and its own ones.
std::vector<std::string> environment_of(const Arguments&, ComparisonSide);
// Replaces the variable or adds it.
void set_variable(std::vector<std::string>& environment, const std::string& name,
                  const std::string& value);

ChildRequest worker_request(const Arguments&, Command, ComparisonSide);

// Launches fresh processes of both sides for timing. Both processes of a pair get the same contents
// and the same random draws of the loader, which are new for every pair. Only simulated noise
// differs between launches.
LaunchWorker pairs_launcher(const Arguments&, std::uint64_t seed,
                            const std::vector<std::string>& more_of_base = {},
                            const std::vector<std::string>& more_of_head = {});

// Says how workloads are timed and when timing ends, as time_as_a_gate does. `counted` has the
// known counts of both sides. Throws RequestError for a number of pairs that can decide nothing.
ComparisonRequest comparison_request(const Arguments&, const Introduction&,
                                     std::vector<std::string> workloads, const ComparisonSettings&,
                                     LaunchWorker, std::uint64_t seed,
                                     std::chrono::nanoseconds most_timing,
                                     std::span<const CountedPair> counted);

}  // namespace stepgate
