// SPDX-License-Identifier: MIT
// The parts of a gate, each with both programs or with one: their counts, their times, what HEAD
// says of its scenarios, and the gate against itself.
#pragma once

#include <functional>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "compare/gate/judge_gate.h"
#include "compare/worker/worker.h"
#include "verbs/arguments.h"
#include "verbs/compare/gate_request.h"

namespace stepgate {

struct CountedBoth {
  std::vector<CountedPair> pairs;  // of the workloads that both have answered for, in their order
  // The failure of each side that failed, and how many workloads it left uncounted; empty
  // otherwise.
  std::vector<std::string> failures;
};

// If one side fails, the counting of the other ends too. The caller must end a failed worker; any
// other has ended. `progress` gets each workload that BASE counts, then a message that HEAD is
// waited for. Throws WaitStopped.
CountedBoth count_both(Worker& base, Worker& head, std::span<const std::string> workloads,
                       const std::function<void(const std::string& workload)>& progress);

struct TimedWorkloads {
  std::optional<ComparisonVerdict> comparison = {};  // absent where nothing was timed to the end
  std::vector<Finding> findings = {};
};

// `both` said hello when they counted, if they did. Workloads that differ come first; the counted
// workloads that turn out to be slower get the times of the parts of their steps. A program that
// breaks is a finding.
TimedWorkloads time_both(const GateRequest&, const Introduction& both,
                         const std::set<std::string>& differing, std::vector<CountedPair>& counted);

// Looks for slowdowns that begin after more steps than a pair of launches runs. Sets `both` to the
// hello of HEAD for both sides.
TimedWorkloads soak_head(const GateRequest&, std::optional<Introduction>& both);

struct DecidedAssertions {
  RunOfProgram head;
  std::vector<Finding> findings = {};
};

// Runs the assertions of HEAD; runs on BASE those that HEAD does not pass.
DecidedAssertions ask_head(const GateRequest&);

// Runs HEAD once, with added assertions that every variant matches its stored runs. Nothing if no
// scenario can be stored.
std::optional<DecidedAssertions> ask_head_as_stored(const GateRequest&);

// Prints a table and a summary for each workload; writes no file. Returns the exit code of the
// gravest workload. Throws RequestError, WorkerError, and NotGatedError if BASE simulates although
// no simulation was requested.
int test_the_gate(const Arguments&);

}  // namespace stepgate
