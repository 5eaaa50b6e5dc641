// SPDX-License-Identifier: MIT
// The parts of a gate, each with both programs or with one: counts, times, HEAD's assertions, and
// the self-test.
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
  std::vector<CountedPair> pairs;         // of the workloads that both have answered, in order
  std::vector<CountingFailure> failures;  // with the number of uncounted workloads
};

// Counts the workloads on both sides. If one side fails, the other side's counting ends too. The
// caller must end a failed worker; other workers have ended. `progress` gets each workload that
// BASE counts, then a message that HEAD is awaited. Throws WaitStopped.
CountedBoth count_both(Worker& base, Worker& head, std::span<const std::string> workloads,
                       const std::function<void(const std::string& workload)>& progress);

struct TimedWorkloads {
  std::optional<ComparisonVerdict> comparison = {};  // absent where timing was not completed
  std::vector<Finding> findings = {};
};

// Times the workloads. `both` has the hellos from counting, if there was any. Workloads with known
// differences come first. Slower workloads get the times of the parts of their steps in `counted`.
// A program that fails is a finding.
TimedWorkloads time_both(const GateRequest&, const Introduction& both,
                         const std::set<std::string>& differing, std::vector<CountedPair>& counted);

// Looks for slowdowns that begin after more steps than a pair of launches has. Sets `both` to the
// hello of HEAD for both sides.
TimedWorkloads soak_head(const GateRequest&, std::optional<Introduction>& both);

struct DecidedAssertions {
  RunOfProgram head;
  std::vector<Finding> findings = {};
};

// Runs the assertions of HEAD, and on BASE those that HEAD does not pass.
DecidedAssertions ask_head(const GateRequest&);

// Runs HEAD once, with added assertions that every variant matches its stored runs. nullopt if no
// scenario can be stored.
std::optional<DecidedAssertions> ask_head_as_stored(const GateRequest&);

// Prints a table and a summary for each workload; writes no file. Returns the exit code of the
// worst workload. Throws RequestError, WorkerError, and NotGatedError if BASE simulates although no
// simulation was requested.
int test_the_gate(const Arguments&);

}  // namespace stepgate
