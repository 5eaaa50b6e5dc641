// SPDX-License-Identifier: MIT
// A run as JUnit XML, which GitLab, Jenkins, Buildkite and actions for GitHub read. Their readers
// differ: some keep one case of a name, some one failure of a case, some read the attribute of a
// failure and some its content; so names are unique, a case has one end, and both say the same.
#pragma once

#include <iosfwd>

#include "report/ci/reported_run.h"

namespace stepgate {

// A testsuite a scenario, a testcase an assertion. The time of a scenario is shared equally by its
// assertions, which are measured together.
void write_junit(std::ostream&, const ReportedCases&);

}  // namespace stepgate
