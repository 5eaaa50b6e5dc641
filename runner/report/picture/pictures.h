// SPDX-License-Identifier: MIT
// Draws pictures of steps, of their memory and of stored runs, each as an SVG file.
#pragma once

#include <filesystem>
#include <iosfwd>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "device/device.h"
#include "device/trace.h"
#include "ledger/series/history.h"
#include "measure/trace/traced.h"
#include "plan/planned_step.h"
#include "report/report.h"

namespace stepgate {

// The requested file or, when several scenarios share it, one file for each: "out/p.svg" becomes
// "out/p.<scenario>.svg".
std::filesystem::path picture_file(const std::filesystem::path& asked_for, const StepPlan&,
                                   std::size_t scenarios);

// A timeline shows the variants' steady steps, one above the other on a common time axis: the host
// and every stream of each rank. Colours are phases, black hatching is the host waiting, and white
// is idle time. A collective is pale while it waits for a rank. write_trace writes complete files.

struct DrawnRank {
  const Trace& trace;
  const TracedStep* numbers = nullptr;  // of that trace, for its line of facts; may be null
};

struct DrawnVariant {
  const StepPlan& plan;
  std::vector<DrawnRank> ranks;  // at least one
  std::string note = {};         // about these ranks, in words
};

// Draws about two steps of the slowest variant, and the same time span of all others. Grey marks
// time without records, since host and device are at different steps.
void draw_timeline(std::ostream&, const DeviceIdentity&, std::span<const DrawnVariant>);

// Draws the variants of a traced scenario. `traced.timelines` must not be empty.
void draw_timeline(std::ostream&, const DeviceIdentity&, std::span<const PlannedStep>,
                   const Traced&);

// A memory picture shows the device memory of steps, one above the other on a common scale of
// bytes. It draws the live bytes over the operations, coloured by purpose, with the peak, the
// bound, the arena and the planned memory. print_memory prints it as a table.

// Draws at least one variant of one scenario. The operations of each variant span the full width.
void draw_memory(std::ostream&, std::span<const PlannedStep>);

// Draws a curve of samples a second for each variant over the values of the knob.
void draw_sweep(std::ostream&, const ReportedSweep&);
// "out/p.svg" becomes "out/p.<sweep>.svg".
std::filesystem::path picture_file(const std::filesystem::path& asked_for, const ReportedSweep&);

// A history picture shows the stored runs of one variant over weeks. It is self-contained and works
// on light and dark pages. print_history prints it as text.

// The style of the pictures, which a page has once.
extern const std::string_view history_style;

// A picture of a page has neither title nor style: the page says and has them.
struct HistoryLook {
  double width = 1200;
  bool is_file = true;
};

// Draws normalised times as changes from the oldest comparable runs: every run with the interval of
// its rounds, the trend with its 95 % band, the alarm, changes, and the limit where an assertion
// has one. Runs of other periods are grey, relative to the oldest runs of their own period, with
// the reason why it began. Rows below say which commit, driver and GPU the runs have, in boxes that
// end where it changes. All classes begin with "history-" and there are no ids, so that several
// pictures can be in one page.
void draw_history(std::ostream&, const VariantHistory&, const HistoryLook& = {});

}  // namespace stepgate
