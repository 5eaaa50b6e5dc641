// SPDX-License-Identifier: MIT
// A run or a gate as one page for people: report.html. What did not pass stands first and open,
// what holds is folded. It loads nothing, so it reads the same as an artifact of a CI system, in a
// mail and in ten years.
#pragma once

#include <cstddef>
#include <iosfwd>

#include "report/ci/reported_run.h"

namespace stepgate {

// Most bytes of all timelines and pictures of memory of a page. A page with more takes a browser
// seconds; scenarios that did not pass get the room first.
constexpr std::size_t most_picture_bytes = 2 * 1024 * 1024;

void write_html(std::ostream&, const ReportedCases&,
                std::size_t picture_bytes = most_picture_bytes);

}  // namespace stepgate
