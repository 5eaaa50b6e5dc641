// SPDX-License-Identifier: MIT
// Contents of a drawn timeline: the boxes of its rows with their words, and the facts of a variant.
// draw_timeline.cpp places them on the picture.
#pragma once

#include <string>
#include <vector>

#include "measure/trace/meetings.h"
#include "measure/trace/traced.h"
#include "plan/step_plan.h"
#include "report/picture/timeline_row.h"

namespace stepgate {

// "12.5 us".
std::string time_text(TraceTime);

// "step 293 us   GPU idle 29 %   1 host wait a step".
std::string facts_of(const TracedStep&);

Piece piece_of(const StepPlan&, const HostSpan&);
Piece piece_of(const StepPlan&, const DeviceWork&);
// A collective in two where its rank waits in it for the last one.
std::vector<Piece> pieces_of(const StepPlan&, const DeviceWork&, const MeetingsOfRanks&);

}  // namespace stepgate
