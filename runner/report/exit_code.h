// SPDX-License-Identifier: MIT
// The exit code that stepgate returns: the table of docs/exit_codes.md.
#pragma once

#include <map>
#include <string>

#include "judge/judge_suite.h"
#include "judge/verdict/verdict.h"

namespace stepgate {

enum class ExitCode : int {
  passes = 0,
  fails = 1,
  wrong_request = 2,  // scenario, profile or arguments, or a run that cannot be trusted
  device_failed = 3,  // or a worker
  not_gated = 4,      // nothing that could be held against a limit was measured
  undecided = 77      // more evidence would decide; what ctest takes for skipped
};

// Combines two exit codes. The first in this order wins: failed, device_failed, wrong_request,
// not_gated, undecided, holds. So no other error hides a failed assertion.
ExitCode gravest(ExitCode, ExitCode);

// The exit code of a scenario in which nothing fails and not everything passes.
enum class UndecidedPolicy { skip, fail, pass };

// By the names that --undecided takes.
std::map<std::string, UndecidedPolicy> undecided_policies();

// The policy is about what is undecided or skipped, and excuses nothing else.
ExitCode exit_code(Outcome, UndecidedPolicy);
// The gravest of its assertions and of what broke.
ExitCode exit_code(const Verdict&, UndecidedPolicy);
// `fails` where it refutes anything.
ExitCode exit_code(const SuiteVerdict&);

constexpr int status_of(ExitCode code) {
  return static_cast<int>(code);
}

// Exit code of a process that a signal ended.
constexpr int interrupted_exit_code(int signal) {
  return 128 + signal;
}

}  // namespace stepgate
