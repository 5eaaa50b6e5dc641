// SPDX-License-Identifier: MIT
// Commands of GitHub's workflows: a line that becomes a remark beside the line of a file.
// https://docs.github.com/en/actions/reference/workflow-commands-for-github-actions
#pragma once

#include <iosfwd>
#include <map>
#include <string>

#include "report/ci/reported_run.h"

namespace stepgate {

enum class Annotations { none, github };

// By the names that --annotations takes.
std::map<std::string, Annotations> annotation_choices();

// An error for every assertion that failed or could not be tried, a warning for every one that was
// left open, at its line. GitHub shows ten of each a step: at most nine, and one that says how many
// more there are.
void write_annotations(std::ostream&, const ReportedCases&);

// Whatever is printed between the two is no command, whoever wrote it. The token is one that nobody
// who writes a file can know.
std::string stop_commands(const std::string& token);
std::string resume_commands(const std::string& token);

}  // namespace stepgate
