// SPDX-License-Identifier: MIT
// The request of a gate, which all its stages read.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <vector>

#include "base/files/temporary_folder.h"
#include "compare/gate/accepted.h"
#include "compare/gate/gate_stages.h"
#include "scenario/scenario.h"
#include "verbs/arguments.h"

namespace stepgate {

struct GateRequest {
  // Has the files of the scenarios; calibrated values are those that BASE has found.
  Arguments arguments;
  std::uint64_t seed = 0;
  ComparisonSettings settings;
  std::chrono::nanoseconds most_timing{0};
  std::vector<Accepted> accepted = {};
  std::vector<Scenario> scenarios = {};          // of BASE; empty with command lines
  std::shared_ptr<TemporaryFolder> caches = {};  // of a gate of a user's program

  // The file with pairs of launches of earlier gates.
  std::filesystem::path file_of_pairs() const {
    return arguments.ledger / "pairs-of-launches.toml";
  }
  bool looks_at(GatePart part) const { return arguments.gate.looks_at(part); }
};

// How much slower the option allows: "1%" is 0.01. Throws RequestError.
double margin_of(const std::string& option);
// nullopt for a text that is no margin, and how to write one.
std::optional<double> fraction_of_margin(const std::string& text);
std::string hint_for_margin(const std::string& text);

// As it was asked for, before any file of it is read. Throws RequestError for a wrong margin.
GateRequest request_of(const Arguments&);

// Returns the programs and files that a gate reads besides its scenarios.
std::vector<std::filesystem::path> inputs_of(const Arguments&);

// Throws RequestError for a missing program, which is an error of the request and not a finding.
void check_programs(const GateArguments&);

// Reads BASE's scenarios and compares them with --head-files, before any program is started. Throws
// RequestError for an unreadable file or a pattern without a match.
std::vector<Finding> look_at_scenarios(GateRequest&);

// Throws RequestError where the libraries that either side's own overrides name are no kernels of
// the scenarios' steps.
void refuse_wrong_libraries_of(const GateRequest&);

GateScope scope_of(const GateRequest&);

bool calibrates(const GateRequest&);  // whether any scenario lacks a value

// Returns whether both sides first start as workers that count. A gate that only times does not
// need this, unless it must calibrate first.
bool counts_first(const GateRequest&);

// Adds a finding and throws NotGatedError where a program simulates without being asked to.
void refuse_stand_in(const GateRequest&, const Hello&, std::vector<Finding>&);

}  // namespace stepgate
