// SPDX-License-Identifier: MIT
// Makes findings of what the two programs have said, a stage of the gate at a time: whether they
// can be compared, counts, time and sentences. judge_gate adds them up. Starts no program, prints
// nothing.
#pragma once

#include <cstdint>
#include <filesystem>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "duel/gate/judge_gate.h"

namespace stepgate {

// Why a gate is none where programs simulate and nobody asked for it.
inline constexpr std::string_view simulated_unasked =
    "there is no GPU here: nothing can be gated on a simulated device that nobody asked for; "
    "give --device simulated to see what a gate does";

// About the gate as a whole.
Finding of_gate(FindingKind, Severity, std::string what, std::string words);

// --- whether they can be compared

struct GateScope {
  std::vector<std::string> patterns;  // of works (is_wanted)
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
// Throws RequestError for a pattern that no work of BASE's command line matches.
JudgedIntroduction judge_introduction(const Introduction&, const GateScope&);

// --- counts

struct JudgedCounts {
  std::vector<Finding> findings;
  std::set<std::string> differing;  // works of which more than a note is found
};
// `failures` are in words what each side that failed says.
JudgedCounts judge_counts(std::span<const CountedPair>, std::span<const std::string> failures);

// --- time

// The works that the duel refutes and a trace can explain, the slowest first, at most so many. They
// point into the given ones.
std::vector<CountedPair*> slowest_works(std::span<CountedPair>, const DuelVerdict&,
                                        std::size_t most);

// --- sentences

// A program's `run` of its scenarios.
struct RunOfProgram {
  std::vector<HeadSentence> sentences;  // of the scenarios that it decided
  std::int64_t scenarios = 0;           // so many
  bool suite_refuted = false;           // though perhaps no sentence of it is
  std::string device;                   // that it says it ran on: "NVIDIA H200, driver 580.159"
  bool simulated = false;
  std::string failure;         // in words, why there are no more; empty when all are there
  bool gated_nothing = false;  // the failure is that it found nothing to measure with
  bool stopped = false;        // a signal came in between
};

// As if a worker of each side had said it.
Introduction introduction_of(const RunOfProgram& head);

// HEAD's run, which must decide every sentence of the scenarios: what a program says nothing of it
// does not hold. Sentences that do not hold come last.
std::vector<Finding> judge_run(const RunOfProgram& head, std::span<const Scenario>);

// The files of the scenarios about which one asks what BASE says.
std::vector<std::filesystem::path> files_with_open_findings(std::span<const Finding>,
                                                            std::span<const Scenario>);
// BASE's word on each of the findings that it speaks of; see compare_with_base.
void know_from_base(std::span<Finding>, std::span<const HeadSentence> of_base);
// The same program would say the same.
void know_from_itself(std::span<Finding>);

// Whether there is a sentence that was not skipped.
bool decides_any(std::span<const HeadSentence>);

// --- the end

// No pass without anything that was compared, unless a finding says already why not.
void refuse_nothing_compared(std::vector<Finding>&);

// Where a work is described, for findings that have no line of their own.
void place(std::span<Finding>, std::span<const Scenario>);

}  // namespace stepgate
