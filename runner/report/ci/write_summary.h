// SPDX-License-Identifier: MIT
// A run in Markdown, for the page that a CI system shows beside its log: what did not pass first,
// why behind a click, everything else in one table.
#pragma once

#include <cstddef>
#include <string>

#include "report/ci/reported_run.h"

namespace stepgate {

// Most bytes that GitHub takes as a step's summary, and Buildkite as an annotation: more is refused
// as a whole.
constexpr std::size_t most_summary_bytes = 1024 * 1024;

// Parts that do not fit are left out from the end, and the last line says how many.
std::string summary_markdown(const ReportedCases&, std::size_t most_bytes = most_summary_bytes);

}  // namespace stepgate
