// SPDX-License-Identifier: MIT
// A gate as it was asked for, which its stages read.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <vector>

#include "compare/gate/accepted.h"
#include "compare/gate/gate_stages.h"
#include "scenario/scenario.h"
#include "verbs/arguments.h"

namespace stepgate {

struct GateRequest {
  // The files are those of the scenarios, and what is calibrated is what BASE has found.
  Arguments arguments;
  std::uint64_t seed = 0;
  ComparisonSettings settings;
  std::chrono::nanoseconds most_timing{0};
  std::vector<Accepted> accepted = {};
  std::vector<Scenario> scenarios = {};  // BASE's; none of command lines

  // Pairs of launches of earlier gates.
  std::filesystem::path file_of_pairs() const {
    return arguments.ledger / "pairs-of-launches.toml";
  }
  bool looks_at(GatePart part) const { return arguments.gate.looks_at(part); }
};

// How much slower the option allows: "1%" is 0.01. Throws RequestError.
double margin_of(const std::string& option);

// As it was asked for, before any file of it is read. Throws RequestError for a wrong margin.
GateRequest request_of(const Arguments&);

// Programs and files that a gate reads besides its scenarios.
std::vector<std::filesystem::path> inputs_of(const Arguments&);

// A program that is not there is a wrong request, and no finding about it: throws RequestError.
void check_programs(const GateArguments&);

// Reads BASE's scenarios, and says what became of them in --head-files. Before anything is started,
// so that a file which cannot be read, or a pattern that matches nothing, costs nothing: throws
// RequestError.
std::vector<Finding> look_at_scenarios(GateRequest&);

GateScope scope_of(const GateRequest&);

bool calibrates(const GateRequest&);  // any scenario

// Whether both sides start as workers that count. A gate that only times does not need this, unless
// it must calibrate first.
bool counts_first(const GateRequest&);

// Adds a finding, and throws NotGatedError where nothing is simulated unasked.
void refuse_stand_in(const GateRequest&, const Hello&, std::vector<Finding>&);

}  // namespace stepgate
