// SPDX-License-Identifier: MIT
// A gate as the cases that CI systems read: one for everything that was compared and found to be
// the same, and one for every finding.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "compare/gate/judge_gate.h"
#include "report/ci/reported_run.h"
#include "report/text/print_gate.h"

namespace stepgate {

// All of a gate, for reports that show more than cases.
struct ReportedGate {
  GateSubject subject;
  GateLooks looks;
  GateVerdict verdict;
};

// A scenario each of "counts", "time", "assertions" and "scenarios". A note passes; what blocks has
// failed; what is not gated or broke is an error; what is undecided is as the policy says.
ReportedCases reported_gate(const RunInfo&, const GateSubject&, const GateLooks&,
                            const GateVerdict&, UndecidedPolicy);

// A gate that has not ended is an error, so that one which is killed leaves no green report.
ReportedCases gate_that_has_not_ended(const RunInfo&, const std::string& reason);

}  // namespace stepgate
