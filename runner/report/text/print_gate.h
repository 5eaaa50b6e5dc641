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

#include "duel/gate/gate_part.h"
#include "duel/gate/judge_gate.h"
#include "report/exit_code.h"
#include "report/run_info.h"
#include "report/text/table.h"

namespace stepgate {

struct GateSubject {
  std::string base;  // as given
  std::string head;
  std::optional<Introduction> both;  // absent where one of them did not even say hello
  double margin = 0;
  std::vector<GatePart> only = {};          // compared; empty: all
  std::int64_t wider = 0;                   // works that have a larger one of their own
  std::chrono::nanoseconds most_timing{0};  // of a duel; 0 where there is none
};

// The things that a gate looked at.
struct GateLooks {
  std::vector<std::string> counted;  // works
  std::optional<DuelVerdict> duel;
  std::vector<HeadSentence> sentences;
};

// "2 %, more for 9 works".
std::string margin_in_words(const GateSubject&);

void print_gate_terms(std::ostream&, const GateSubject&);

// "counts     133 works, 3 differ   0.3 s"
void print_gate_stage(std::ostream&, const std::string& name, const std::string& words,
                      double seconds);

void print_gate_note(std::ostream&, const std::string& words);

// Prints the comparisons that are no finding: every work that is as fast and every sentence that
// holds.
void print_gate_looks(std::ostream&, const GateLooks&);

void print_gate(std::ostream&, const GateSubject&, const GateVerdict&, UndecidedPolicy, Style);

// The last line: "BLOCKED: 3 x count", "PASSED: ...".
std::string answer_in_words(const GateVerdict&);

// The program as given, with what it says of itself where it said anything (may be null).
std::string program_in_words(const std::string& given, const Hello*);

// A finding that several works have in common, which is said once.
struct FindingGroup {
  const Finding* first = nullptr;
  std::vector<std::string> works;  // empty names: of the gate as a whole
};
// In the order of the findings, which must outlive this.
std::vector<FindingGroup> grouped(const std::vector<Finding>&);

// One JSON object a line, schema "stepgate.gate/1": the gate, every work that was timed, every
// finding, the end.
void write_gate_json(std::ostream&, const RunInfo&, const GateSubject&,
                     const std::optional<DuelVerdict>&, const GateVerdict&, ExitCode);

// Returns the gravest of all codes that HEAD may be told from what was found.
ExitCode exit_code(const GateVerdict&, UndecidedPolicy);

}  // namespace stepgate
