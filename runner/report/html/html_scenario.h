// SPDX-License-Identifier: MIT
// One scenario of a run in report.html.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "report/ci/reported_run.h"
#include "report/html/html.h"

namespace stepgate {

Tone tone_of(CaseEnd);

// "fails", "broken", "device failed", "not run": what became of it, in a word or two. An assertion
// that the suite refutes counts.
std::string scenario_outcome(const ReportedScenario&);

bool has_passed(const ReportedScenario&);

// How much room the pictures of a page may take, and how many of them there are.
struct PictureRoom {
  std::size_t bytes_left = 0;
  int drawn = 0;
  int left_out = 0;
};

std::string html_scenario(const ReportedScenario&, PictureRoom&, bool open);

}  // namespace stepgate
