// SPDX-License-Identifier: MIT
// The two programs of a gate as worker processes.
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

// A program as it was given: without a slash it is one of this folder.
std::string program_path(const std::string& given);

// Throws RequestError where there is no such program; `option` named it.
void check_program(const std::string& option, const std::string& given);

// So that a mistyped device is no fault of a program. Whether there is a GPU, the programs say.
// Throws RequestError.
void check_device_name(const DeviceChoice&);

// Throws RequestError for two scenarios of one name, since a gate compares by names.
void refuse_namesakes(std::span<const Scenario>);

// `<program> --baselines B VERB ... -- FILES`, with the device, knobs, ranks and time to answer as
// they were given, and `more`. Every command line of another stepgate is made here.
Command program_command(const Arguments&, const std::string& program, const std::string& verb,
                        const std::vector<std::string>& more = {});

// The worker of a side: its command line as it was given, which knows none of our options, or its
// program on the scenarios, with what BASE calibrated and `more`.
Command worker_command(const Arguments&, ComparisonSide, std::vector<std::string> more = {});

// Whether BASE and HEAD run the same bytes in the same environment; of command lines, whatever
// their arguments are.
bool run_same_program(const Arguments&);

// A side sees of the environment what workers see, and what it alone is given.
std::vector<std::string> environment_of(const Arguments&, ComparisonSide);
// In the place of what the variable has been.
void set_variable(std::vector<std::string>& environment, const std::string& name,
                  const std::string& value);

ChildRequest worker_request(const Arguments&, Command, ComparisonSide);

// Fresh processes of both sides, as they are timed. Both of a pair get the same contents and the
// same draws of the loader, which are new at every pair; only simulated noise is a launch's own.
LaunchWorker pairs_launcher(const Arguments&, std::uint64_t seed,
                            const std::vector<std::string>& more_of_base = {},
                            const std::vector<std::string>& more_of_head = {});

// How the workloads are timed and when that ends, as time_as_a_gate says. `counted` are the counts
// of both sides, as far as they are known. Throws RequestError for a number of pairs that can
// decide nothing.
ComparisonRequest comparison_request(const Arguments&, const Introduction&,
                                     std::vector<std::string> workloads, const ComparisonSettings&,
                                     LaunchWorker, std::uint64_t seed,
                                     std::chrono::nanoseconds most_timing,
                                     std::span<const CountedPair> counted);

}  // namespace stepgate
