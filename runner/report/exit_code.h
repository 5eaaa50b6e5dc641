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
  device_failed = 3,  // a device or a worker failed
  not_gated = 4,      // nothing was measured that has a limit
  undecided = 77      // more evidence would decide; ctest counts 77 as skipped
};

// Combines two exit codes. The first in this order wins: failed, device_failed, wrong_request,
// not_gated, undecided, passes. So no other error hides a failed assertion.
ExitCode gravest(ExitCode, ExitCode);

// The exit code of a scenario in which nothing fails and not everything passes.
enum class UndecidedPolicy { skip, fail, pass };

// The policies by the names that --undecided accepts.
std::map<std::string, UndecidedPolicy> undecided_policies();

// The policy applies only to undecided and skipped outcomes.
ExitCode exit_code(Outcome, UndecidedPolicy);
// Combines the exit codes of its assertions and of errors.
ExitCode exit_code(const Verdict&, UndecidedPolicy);
// Returns `fails` where the suite makes any assertion fail.
ExitCode exit_code(const SuiteVerdict&);

constexpr int status_of(ExitCode code) {
  return static_cast<int>(code);
}

// The exit code of a process that was ended by a signal.
constexpr int interrupted_exit_code(int signal) {
  return 128 + signal;
}

}  // namespace stepgate
