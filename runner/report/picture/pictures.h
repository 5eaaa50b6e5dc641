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

// A timeline shows the variants' steady steps, one above the other on one time axis: what the host
// and every stream of each rank do. Colours are phases, black hatching is the host waiting, white
// is idle time. A collective is pale while it waits for a rank. write_trace writes complete files.

struct DrawnRank {
  const Trace& trace;
  const TracedStep* numbers = nullptr;  // of that trace, for its line of facts; null: none
};

struct DrawnVariant {
  const StepPlan& plan;
  std::vector<DrawnRank> ranks;  // at least one
  std::string note = {};         // about these ranks, in words
};

// Draws about two steps of the slowest variant, and as much time of all others. Grey marks time
// that no record covers because host and device are at different steps.
void draw_timeline(std::ostream&, const DeviceIdentity&, std::span<const DrawnVariant>);

// The variants of a scenario that has been traced. `traced.timelines` must not be empty.
void draw_timeline(std::ostream&, const DeviceIdentity&, std::span<const PlannedStep>,
                   const Traced&);

// A memory picture shows the device memory of steps, one above the other on one scale of bytes. It
// draws what is live over the operations, coloured by purpose, with the peak, the bound, the arena
// and what the plan holds. print_memory prints it as a table.

// Draws at least one variant of one scenario. The operations of each variant span the full width.
void draw_memory(std::ostream&, std::span<const PlannedStep>);

// A history picture shows the stored runs of one variant over the weeks. It needs nothing from
// outside the file and works on light and dark pages. print_history says the same in words.

// Times beside the anchor's, as changes from the oldest comparable runs: every run, the trend with
// the band that holds it with 95 %, the alarm, changes, the limit where an assertion has one. Runs
// of other periods are grey, each beside the oldest of its own period, with what began it. All
// classes begin with "history-" and there are no ids, so that pictures may stand in one page.
void draw_history(std::ostream&, const VariantHistory&);

}  // namespace stepgate
