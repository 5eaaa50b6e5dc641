// SPDX-License-Identifier: MIT
// Writes the part of report.html about a gate that has come to its end.
#pragma once

#include <string>

#include "report/ci/reported_gate.h"

namespace stepgate {

// Findings, what blocks first; the workloads that were timed; HEAD's assertions; what was accepted.
std::string html_gate(const ReportedGate&);

}  // namespace stepgate
