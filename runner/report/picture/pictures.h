// SPDX-License-Identifier: MIT
// Pictures of steps, of their memory and of stored runs, each an SVG in a file of its own.
#pragma once

#include <filesystem>
#include <iosfwd>
#include <span>
#include <string>
#include <vector>

#include "device/device.h"
#include "device/trace.h"
#include "ledger/series/history.h"
#include "measure/trace/traced.h"
#include "plan/planned_step.h"

namespace stepgate {

// The file that was asked for, or, when several scenarios share it, one for each:
// "out/p.svg" becomes "out/p.<scenario>.svg".
std::filesystem::path picture_file(const std::filesystem::path& asked_for, const StepPlan&,
                                   std::size_t scenarios);

// stream of each rank do. Phases are colours, waits of the host hatched in black, idle time white,
// collectives pale where they wait for a rank. write_trace writes files with everything in them.

struct DrawnRank {
  const Trace& trace;
  const TracedStep* numbers = nullptr;  // of that trace, for its line of facts; null: none
};

struct DrawnVariant {
  const StepPlan& plan;
  std::vector<DrawnRank> ranks;  // at least one
  std::string note = {};         // about these ranks, in words
};

// Draws about two steps of the slowest variant, and as much time of all others. What no record
// covers, because host and device are not at the same step, is grey.
void draw_timeline(std::ostream&, const DeviceIdentity&, std::span<const DrawnVariant>);

// The variants of a scenario that has been traced. `traced.timelines` must not be empty.
void draw_timeline(std::ostream&, const DeviceIdentity&, std::span<const PlannedStep>,
                   const Traced&);

// operations, coloured by purpose, with the peak, the bound, the arena and what the plan holds. As
// a table: print_memory.

// The variants of one scenario, at least one. Each has its own operations over the whole width.
void draw_memory(std::ostream&, std::span<const PlannedStep>);

// light and dark. print_history says the same in words.

// Times beside the anchor's, as changes from the oldest comparable runs: every run, the trend with
// the band that holds it with 95 %, the alarm, changes, the limit where an assertion has one. Runs
// of other periods are grey, each beside the oldest of its own period, with what began it. All
// classes begin with "history-" and there are no ids, so that pictures may stand in one page.
void draw_history(std::ostream&, const VariantHistory&);

}  // namespace stepgate
