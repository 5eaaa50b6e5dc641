// SPDX-License-Identifier: MIT
// Scenarios and plans for programs: what `list --json` and `plan --json` write.
#pragma once

#include <iosfwd>
#include <string>

#include "base/text/diagnostic.h"
#include "plan/memory_event.h"
#include "plan/step_plan.h"
#include "scenario/scenario.h"

namespace stepgate {

// One JSON object a line: name, file, tags, the steps in words, and of every assertion its name,
// line and text. Of a file with faults the name and what is wrong with it: whoever makes tests of
// scenarios must not lose one.
void write_listed(std::ostream&, const Scenario&);
void write_unlisted(std::ostream&, const std::string& file, const RequestError&);

// Writes one JSON object on one line, a memory_line of docs/json_schema.json: the events in their
// order, and the segments at the end. Addresses and sizes in bytes.
void write_memory_json(std::ostream&, const StepPlan&, const MemoryHistory&);

}  // namespace stepgate
