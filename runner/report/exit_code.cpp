// SPDX-License-Identifier: MIT
#include "report/exit_code.h"

#include <algorithm>
#include <array>

namespace stepgate {
namespace {

constexpr std::array from_gravest{ExitCode::fails,         ExitCode::device_failed,
                                  ExitCode::wrong_request, ExitCode::not_gated,
                                  ExitCode::undecided,     ExitCode::passes};

ExitCode code_of_undecided(UndecidedPolicy policy) {
  switch (policy) {
    case UndecidedPolicy::skip:
      return ExitCode::undecided;
    case UndecidedPolicy::fail:
      return ExitCode::fails;
    case UndecidedPolicy::pass:
      return ExitCode::passes;
  }
  return ExitCode::undecided;
}

}  // namespace

ExitCode gravest(ExitCode one, ExitCode other) {
  const auto is_either = [=](ExitCode code) { return code == one || code == other; };
  return *std::find_if(from_gravest.begin(), from_gravest.end(), is_either);
}

std::map<std::string, UndecidedPolicy> undecided_policies() {
  return {{"skip", UndecidedPolicy::skip},
          {"fail", UndecidedPolicy::fail},
          {"pass", UndecidedPolicy::pass}};
}

ExitCode exit_code(Outcome outcome, UndecidedPolicy policy) {
  switch (outcome) {
    case Outcome::passes:
      return ExitCode::passes;
    case Outcome::fails:
      return ExitCode::fails;
    case Outcome::machine_slower:
    case Outcome::no_baseline:
    case Outcome::not_comparable:
      return ExitCode::not_gated;
    case Outcome::undecided:
    case Outcome::skipped:
      return code_of_undecided(policy);
  }
  return ExitCode::undecided;
}

// In a scenario that cannot be trusted or was not measured, only failed assertions count.
ExitCode exit_code(const Verdict& verdict, UndecidedPolicy policy) {
  ExitCode code = exit_code(verdict.outcome, policy);
  if (!verdict.failed && !verdict.broken) return code;
  code = verdict.failed ? ExitCode::device_failed : ExitCode::wrong_request;
  return verdict.outcome == Outcome::fails ? gravest(code, ExitCode::fails) : code;
}

ExitCode exit_code(const SuiteVerdict& suite) {
  return suite.failed || !suite.failed_among_others.empty() ? ExitCode::fails : ExitCode::passes;
}

}  // namespace stepgate
