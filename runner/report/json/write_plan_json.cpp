// SPDX-License-Identifier: MIT
#include "report/json/write_plan_json.h"

#include <filesystem>
#include <ostream>

#include "base/record/record_json.h"
#include "base/text/json_line.h"
#include "plan/compose/step_names.h"
#include "report/json/json_parts.h"

namespace stepgate {

void write_listed(std::ostream& out, const Scenario& scenario) {
  nlohmann::ordered_json lines = nlohmann::ordered_json::array();
  for (const Expectation& assertion : scenario.expect) {
    lines.push_back(
        {{"name", assertion.name}, {"line", assertion.place.line}, {"text", assertion.text}});
  }
  const nlohmann::ordered_json listed{{"name", name_of_file(scenario)},
                                      {"file", scenario.file},
                                      {"tags", scenario.tags},
                                      {"steps", steps_json(described_steps(scenario.variants))},
                                      {"lines", std::move(lines)}};
  out << json_line(listed) << '\n';
}

void write_unlisted(std::ostream& out, const std::string& file, const RequestError& error) {
  const nlohmann::ordered_json unlisted{{"name", std::filesystem::path(file).stem().string()},
                                        {"file", file},
                                        {"error", error.what()}};
  out << json_line(unlisted) << '\n';
}

void write_memory_json(std::ostream& out, const Scenario& scenario, const StepPlan& plan,
                       const MemoryHistory& history) {
  RecordJson buffers = RecordJson::array();
  for (const Buffer& buffer : plan.buffers) buffers.push_back(buffer.name);
  RecordJson operations = RecordJson::array();
  for (const Operation& operation : plan.operations)
    operations.push_back({{"name", operation.name}, {"phase", name_of(operation.phase)}});
  RecordJson line{{"schema", "stepgate.memory/1"},
                  {"scenario", plan.scenario},
                  {"variant", plan.variant},
                  {"buffers", std::move(buffers)},
                  {"operations", std::move(operations)},
                  {"events", record_json(history.events)},
                  {"segments", record_json(history.segments)}};
  add_point(line, scenario.point);
  out << json_line(line) << '\n';
}

}  // namespace stepgate
