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

// A side that fails ends the other's counting; a worker that failed is the caller's to end, any
// other has ended. `progress` is told the workloads that BASE is asked for, then that HEAD is
// waited for. Throws WaitStopped.
CountedBoth count_both(Worker& base, Worker& head, std::span<const std::string> workloads,
                       const std::function<void(const std::string& workload)>& progress);

struct TimedWorks {
  std::optional<ComparisonVerdict> comparison = {};  // absent where nothing was timed to the end
  std::vector<Finding> findings = {};
};

// `both` said hello when they counted, if they did. Workloads that differ come first; the counted
// workloads that turn out to be slower get the times of the parts of their steps. A program that
// breaks is a finding.
TimedWorks time_both(const GateRequest&, const Introduction& both,
                     const std::set<std::string>& differing, std::vector<CountedPair>& counted);

// Looks for what begins after more steps than a pair of launches has. Sets `both` to what HEAD says
// twice.
TimedWorks soak_head(const GateRequest&, std::optional<Introduction>& both);

struct DecidedAssertions {
  RunOfProgram head;
  std::vector<Finding> findings = {};
};

// BASE is asked about what HEAD does not pass.
DecidedAssertions ask_head(const GateRequest&);

// One run of HEAD, whose scenarios say besides that every variant is as its stored runs were.
// Nothing where no scenario can be stored.
std::optional<DecidedAssertions> ask_head_as_stored(const GateRequest&);

// Prints a table of each workload and what it comes to; writes no file. Returns the exit code: that
// of the gravest workload. Throws RequestError, WorkerError, and NotGatedError where BASE simulates
// and nobody asked for it.
int test_the_gate(const Arguments&);

}  // namespace stepgate
