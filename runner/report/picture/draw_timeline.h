// SPDX-License-Identifier: MIT
// A picture of the variants' steady steps, one above the other on one time axis, as SVG. It shows
// what the host and every stream of each rank do: phases as colours, waits of the host hatched in
// black, idle white, collectives pale where they wait for a rank. write_trace writes files with
// everything in them.
#pragma once

#include <filesystem>
#include <iosfwd>
#include <span>
#include <string>
#include <vector>

#include "device/device.h"
#include "device/trace.h"
#include "measure/trace/traced.h"
#include "plan/planned_step.h"

namespace stepgate {

// The file that was asked for, or, when several scenarios share it, one for each:
// "out/p.svg" becomes "out/p.<scenario>.svg".
std::filesystem::path picture_file(const std::filesystem::path& asked_for, const StepPlan&,
                                   std::size_t scenarios);

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

}  // namespace stepgate
