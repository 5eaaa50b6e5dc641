// SPDX-License-Identifier: MIT
#include "report/json/write_memory_json.h"

#include <ostream>

#include "base/record/record_json.h"
#include "base/text/json_line.h"
#include "plan/compose/step_names.h"

namespace stepgate {

void write_memory_json(std::ostream& out, const StepPlan& plan, const MemoryHistory& history) {
  RecordJson buffers = RecordJson::array();
  for (const Buffer& buffer : plan.buffers) buffers.push_back(buffer.name);
  RecordJson operations = RecordJson::array();
  for (const Operation& operation : plan.operations)
    operations.push_back({{"name", operation.name}, {"phase", name_of(operation.phase)}});
  out << json_line(RecordJson{{"schema", "stepgate.memory/1"},
                              {"scenario", plan.scenario},
                              {"variant", plan.variant},
                              {"buffers", std::move(buffers)},
                              {"operations", std::move(operations)},
                              {"events", record_json(history.events)},
                              {"segments", record_json(history.segments)}})
      << '\n';
}

}  // namespace stepgate
