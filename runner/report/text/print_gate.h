// SPDX-License-Identifier: MIT
// The printed report of a gate, and its JSON: what was compared in the first line, how far each
// stage came, what was found, and the answer in the last line.
#pragma once

#include <chrono>
#include <cstdint>
#include <iosfwd>
#include <optional>
#include <string>
#include <vector>

#include "compare/gate/gate_part.h"
#include "compare/gate/judge_gate.h"
#include "report/exit_code.h"
#include "report/run_info.h"
#include "report/text/coloured.h"

namespace stepgate {

struct GateSubject {
  std::string base;  // as given
  std::string head;
  std::optional<Introduction> both;  // absent where one of them did not even say hello
  double margin = 0;
  std::vector<GatePart> only = {};          // compared; empty: all
  std::int64_t wider = 0;                   // workloads that have a larger one of their own
  std::chrono::nanoseconds most_timing{0};  // of a comparison; 0 where there is none
};

// The things that a gate looked at.
struct GateLooks {
  std::vector<std::string> counted;  // workloads
  std::optional<ComparisonVerdict> comparison;
  std::vector<HeadAssertion> assertions;
};

// "2 %, more for 9 workloads".
std::string margin_in_words(const GateSubject&);

void print_gate_terms(std::ostream&, const GateSubject&);

// "counts     133 workloads, 3 differ   0.3 s"
void print_gate_stage(std::ostream&, const std::string& name, const std::string& words,
                      double seconds);

void print_gate_note(std::ostream&, const std::string& words);

// Prints the comparisons that are no finding: every workload that is as fast and every assertion
// that holds.
void print_gate_looks(std::ostream&, const GateLooks&);

void print_gate(std::ostream&, const GateSubject&, const GateVerdict&, UndecidedPolicy, Style);

// The last line: "BLOCKED: 3 x count", "PASSED: ...".
std::string answer_in_words(const GateVerdict&);

// The program as given, with what it says of itself where it said anything (may be null).
std::string program_in_words(const std::string& given, const Hello*);

// A finding that several workloads have in common, which is said once.
struct FindingGroup {
  const Finding* first = nullptr;
  std::vector<std::string> workloads;  // empty names: of the gate as a whole
};
// In the order of the findings, which must outlive this.
std::vector<FindingGroup> grouped(const std::vector<Finding>&);

// One JSON object a line, schema "stepgate.gate/2": the gate, every workload that was timed, every
// finding, the end.
void write_gate_json(std::ostream&, const RunInfo&, const GateSubject&,
                     const std::optional<ComparisonVerdict>&, const GateVerdict&, ExitCode);

// Returns the gravest of all codes that HEAD may be told from what was found.
ExitCode exit_code(const GateVerdict&, UndecidedPolicy);

}  // namespace stepgate
