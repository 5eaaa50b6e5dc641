// SPDX-License-Identifier: MIT
// What a run tells the process that started it.
#pragma once

#include <map>
#include <span>
#include <string>

#include "judge/judge_suite.h"
#include "judge/verdict.h"

namespace stepgate {

constexpr int request_exit_code =
    2;  // scenario, profile or arguments are wrong, or the run cannot be trusted
constexpr int device_exit_code = 3;  // the device failed

// What becomes of a scenario in which nothing is refuted and not everything holds.
enum class UndecidedPolicy { skip, fail, pass };

// By the names that --undecided takes.
std::map<std::string, UndecidedPolicy> undecided_policies();

// The worst of: 0 everything holds, 77 not everything could be shown, 1 something is refuted or
// the suite as a whole is, 2 a run is broken.
int exit_code(std::span<const Verdict>, const SuiteVerdict&, UndecidedPolicy);
int exit_code(Outcome, UndecidedPolicy);

// Of a process that a signal ended.
constexpr int interrupted_exit_code(int signal) {
  return 128 + signal;
}

}  // namespace stepgate
