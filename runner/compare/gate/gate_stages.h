// SPDX-License-Identifier: MIT
// Makes findings from the answers of the two programs, one stage of the gate at a time: whether
// they can be compared, counts, time and assertions. judge_gate combines them. Starts no program
// and prints nothing.
#pragma once

#include <cstdint>
#include <filesystem>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "compare/gate/judge_gate.h"

namespace stepgate {

// The reason why nothing is gated: the programs simulate although no simulation was requested.
inline constexpr std::string_view simulated_unasked =
    "there is no GPU here: nothing can be gated on a simulated device that nobody asked for; "
    "give --device simulated to see what a gate does";

// Makes a finding about the gate as a whole.
Finding of_gate(FindingKind, Severity, std::string what, std::string words);

struct GateScope {
  std::vector<std::string> patterns;  // of workloads (is_wanted)
  bool of_commands = false;           // command lines name their own device
  bool of_program = false;            // a user's program in two folders
  bool of_kernels = false;            // two libraries of kernels
  bool simulation_asked = false;      // requested by --device
  bool counts = true;                 // whether counts are compared
  bool same_program = false;          // BASE and HEAD run the same bytes in the same environment
};

bool simulates_unasked(const Hello&, const GateScope&);
bool same_device(const Hello&, const Hello&);

struct JudgedIntroduction {
  std::vector<Finding> findings;
  bool comparable = true;  // false: no further stage is needed
};
// Throws RequestError for a pattern that no workload of BASE's command line matches.
JudgedIntroduction judge_introduction(const Introduction&, const GateScope&);

// Removes the kernels whose time a side does not tell, with a finding for each. An older BASE is no
// fault of HEAD; a HEAD that tells nothing is not gated.
std::vector<Finding> without_kernels_that_are_not_told(const Introduction&,
                                                       std::vector<std::string>& kernels);

struct JudgedCounts {
  std::vector<Finding> findings;
  std::set<std::string> differing;  // workloads with a finding worse than a note
};
// A side that failed while it counted.
struct CountingFailure {
  std::string workload;  // that it counted; empty: none
  std::string words;
};
Finding finding_of(const CountingFailure&);

JudgedCounts judge_counts(std::span<const CountedPair>, std::span<const CountingFailure>);

// Returns up to `most` workloads that fail in the comparison and that a trace can explain, the
// slowest first. The pointers refer to the given pairs.
std::vector<CountedPair*> slowest_workloads(std::span<CountedPair>, const ComparisonVerdict&,
                                            std::size_t most);

// A program's `run` of its scenarios.
struct RunOfProgram {
  std::vector<HeadAssertion> assertions;  // of the scenarios that it decided
  std::int64_t scenarios = 0;             // number of scenarios
  bool suite_failed = false;              // possibly without any failed assertion
  std::string device;                     // that it says it ran on: "NVIDIA H200, driver 580.159"
  bool simulated = false;
  std::string failure;         // why assertions are missing, in words; empty when all are there
  bool gated_nothing = false;  // there was no device to measure with
  bool refused = false;        // it ended with 2: it says that the request is wrong
  bool stopped = false;        // by a signal
};

// Makes the introduction that workers of both sides would have given.
Introduction introduction_of(const RunOfProgram& head);

// Judges HEAD's run, which must decide every assertion of the scenarios; an assertion without an
// outcome does not pass. Assertions that do not pass come last.
std::vector<Finding> judge_run(const RunOfProgram& head, std::span<const Scenario>);

// The files of the scenarios with findings that need BASE's outcome.
std::vector<std::filesystem::path> files_with_open_findings(std::span<const Finding>,
                                                            std::span<const Scenario>);
// Applies BASE's outcomes to the findings about the same assertions; see compare_with_base. Where
// BASE's run failed before it said anything of one, that finding is a failure of BASE. Throws
// RequestError where BASE refused the request.
void know_from_base(std::span<Finding>, const RunOfProgram& base);
// Applies HEAD's own outcomes as BASE's, since both run the same program.
void know_from_itself(std::span<Finding>);

// Returns whether any assertion was not skipped.
bool decides_any(std::span<const HeadAssertion>);

// Adds a finding that refuses to pass where nothing was compared, unless another finding already
// says why.
void refuse_nothing_compared(std::vector<Finding>&);

// Adds the place of the workload's description to findings without a place.
void place(std::span<Finding>, std::span<const Scenario>);

// Moves findings about steps with a kernel of a library to its source, and failures of HEAD.
void place_at_source(std::span<Finding>, std::span<const Scenario>, const Place& source);

}  // namespace stepgate
