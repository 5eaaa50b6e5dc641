// SPDX-License-Identifier: MIT
// Prints the progress of a gate, and its self-test: one row for each trial, then the summary.
#pragma once

#include <chrono>
#include <cstdint>
#include <iosfwd>
#include <string>

#include "compare/gate/self_test.h"
#include "report/report.h"

namespace stepgate {

// Prints the two programs and the margin.
void print_gate_terms(std::ostream&, const GateSubject&);

// "counts     133 workloads, 3 differ   0.3 s"
void print_gate_stage(std::ostream&, const std::string& name, const std::string& words,
                      double seconds);

void print_gate_note(std::ostream&, const std::string& words);

// Prints the program under test and the device, before all self-tests.
void print_self_tests(std::ostream&, const std::string& program, const Hello&, std::uint64_t seed);

// Prints the headings of one workload, before its rows.
void print_self_test_terms(std::ostream&, const std::string& workload, double margin,
                           std::chrono::nanoseconds most_timing);

void print_trial(std::ostream&, const TrialResult&);

// Prints, after the rows, the spread between gates of identical programs, the margin that this
// allows, and "passes", "fails" or "undecided" with the reason.
void print_self_test(std::ostream&, const SelfTest&, bool simulated);

}  // namespace stepgate
