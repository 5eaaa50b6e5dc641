// SPDX-License-Identifier: MIT
// The assertions and the report that `attach` and `read` share: both judge the counts of steps that
// no plan describes, as a scenario of one request.
#pragma once

#include <string>
#include <string_view>

#include "report/report.h"
#include "verbs/arguments.h"
#include "verbs/machine_reports.h"

namespace stepgate {

// Adds the assertions of --expect, which may name the scenario's variants. Throws RequestError with
// all their faults, among them metrics that no call counts; `verb` is named in these.
void add_expectations(const Arguments&, std::string_view verb, Scenario&);

// The run of that one scenario, before its verdict. The scenario must outlive it.
RunSoFar counted_run(const Arguments&, const Scenario&);

// Ends the run with its verdict: prints it, and writes the files that were asked for.
Report report_counted(const Arguments&, std::string verb, RunSoFar, Verdict, const ReportFiles&);

}  // namespace stepgate
