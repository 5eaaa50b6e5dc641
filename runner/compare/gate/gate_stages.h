// SPDX-License-Identifier: MIT
// Makes findings of what the two programs have said, a stage of the gate at a time: whether they
// can be compared, counts, time and assertions. judge_gate adds them up. Starts no program, prints
// nothing.
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

// About the gate as a whole.
Finding of_gate(FindingKind, Severity, std::string what, std::string words);

struct GateScope {
  std::vector<std::string> patterns;  // of workloads (is_wanted)
  bool of_commands = false;           // command lines say themselves what they run on
  bool simulation_asked = false;      // by --device
  bool counts = true;                 // they are to be compared
  bool same_program = false;          // BASE and HEAD run the same bytes in the same environment
};

bool simulates_unasked(const Hello&, const GateScope&);
bool same_device(const Hello&, const Hello&);

struct JudgedIntroduction {
  std::vector<Finding> findings;
  bool comparable = true;  // false: nothing else is worth asking
};
// Throws RequestError for a pattern that no workload of BASE's command line matches.
JudgedIntroduction judge_introduction(const Introduction&, const GateScope&);

struct JudgedCounts {
  std::vector<Finding> findings;
  std::set<std::string> differing;  // workloads with a finding graver than a note
};
// `failures` are in words what each side that failed says.
JudgedCounts judge_counts(std::span<const CountedPair>, std::span<const std::string> failures);

// The workloads that the comparison refutes and a trace can explain, the slowest first, at most so
// many. They point into the given ones.
std::vector<CountedPair*> slowest_workloads(std::span<CountedPair>, const ComparisonVerdict&,
                                            std::size_t most);

// A program's `run` of its scenarios.
struct RunOfProgram {
  std::vector<HeadAssertion> assertions;  // of the scenarios that it decided
  std::int64_t scenarios = 0;             // so many
  bool suite_failed = false;              // though perhaps no assertion of it is
  std::string device;                     // that it says it ran on: "NVIDIA H200, driver 580.159"
  bool simulated = false;
  std::string failure;         // in words, why there are no more; empty when all are there
  bool gated_nothing = false;  // the failure is that it found nothing to measure with
  bool stopped = false;        // a signal came in between
};

// As if a worker of each side had said it.
Introduction introduction_of(const RunOfProgram& head);

// HEAD's run, which must decide every assertion of the scenarios: what a program says nothing of it
// does not pass. Assertions that do not pass come last.
std::vector<Finding> judge_run(const RunOfProgram& head, std::span<const Scenario>);

// The files of the scenarios about which one asks what BASE says.
std::vector<std::filesystem::path> files_with_open_findings(std::span<const Finding>,
                                                            std::span<const Scenario>);
// BASE's word on each of the findings that it speaks of; see compare_with_base.
void know_from_base(std::span<Finding>, std::span<const HeadAssertion> of_base);
// The same program would say the same.
void know_from_itself(std::span<Finding>);

// Whether there is an assertion that was not skipped.
bool decides_any(std::span<const HeadAssertion>);

// No pass without anything that was compared, unless a finding says already why not.
void refuse_nothing_compared(std::vector<Finding>&);

// Where a workload is described, for findings that have no line of their own.
void place(std::span<Finding>, std::span<const Scenario>);

}  // namespace stepgate
