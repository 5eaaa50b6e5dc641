// SPDX-License-Identifier: MIT
// A picture of how the stored runs of one variant went over the weeks, as SVG with nothing outside
// it, in light and dark. print_history says the same in words.
#pragma once

#include <iosfwd>

#include "ledger/series/history.h"

namespace stepgate {

// Times beside the anchor's, as changes from the oldest comparable runs: every run, the trend with
// the band that holds it with 95 %, the alarm, changes, the limit where an assertion has one. Runs
// of other periods are grey, each beside the oldest of its own period, with what began it. All
// classes begin with "history-" and there are no ids, so that pictures may stand in one page.
void draw_history(std::ostream&, const VariantHistory&);

}  // namespace stepgate
