// SPDX-License-Identifier: MIT
// Writes scenarios and plans as JSON, for `list --json` and `plan --json`.
#pragma once

#include <iosfwd>
#include <string>

#include "base/text/diagnostic.h"
#include "plan/memory_event.h"
#include "plan/step_plan.h"
#include "scenario/scenario.h"

namespace stepgate {

// Writes one JSON object on one line: name, file, tags, the steps in words, and the name, line and
// text of every assertion. A file with errors is listed with its name and errors, so that a program
// that generates tests from the list misses none.
void write_listed(std::ostream&, const Scenario&);
void write_unlisted(std::ostream&, const std::string& file, const RequestError&);

// Writes one JSON object on one line, a memory_line of docs/json_schema.json: the events in order,
// and the segments at the end. Addresses and sizes are in bytes.
void write_memory_json(std::ostream&, const Scenario&, const StepPlan&, const MemoryHistory&);

}  // namespace stepgate
