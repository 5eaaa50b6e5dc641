// SPDX-License-Identifier: MIT
#include "report/exit_code.h"

#include <algorithm>

namespace stepgate {
namespace {

constexpr int holds_code = 0;
constexpr int refuted_code = 1;
constexpr int not_shown_code = 77;

// 77 is larger than 1 and 2, but not worse.
int severity(int code) {
  return code == not_shown_code ? 1 : code == refuted_code ? 2 : code == request_exit_code ? 3 : 0;
}

}  // namespace

std::map<std::string, UndecidedPolicy> undecided_policies() {
  return {{"skip", UndecidedPolicy::skip},
          {"fail", UndecidedPolicy::fail},
          {"pass", UndecidedPolicy::pass}};
}

int exit_code(Outcome outcome, UndecidedPolicy policy) {
  if (outcome == Outcome::holds) return holds_code;
  if (outcome == Outcome::refuted) return refuted_code;
  switch (policy) {
    case UndecidedPolicy::skip:
      return not_shown_code;
    case UndecidedPolicy::fail:
      return refuted_code;
    case UndecidedPolicy::pass:
      return holds_code;
  }
  return not_shown_code;
}

int exit_code(std::span<const Verdict> verdicts, const SuiteVerdict& suite,
              UndecidedPolicy policy) {
  const bool any_refuted = suite.refuted || !suite.refuted_among_others.empty();
  int worst_code = any_refuted ? refuted_code : holds_code;
  for (const Verdict& verdict : verdicts) {
    const int code = verdict.broken ? request_exit_code : exit_code(verdict.outcome, policy);
    if (severity(code) > severity(worst_code)) worst_code = code;
  }
  return worst_code;
}

}  // namespace stepgate
