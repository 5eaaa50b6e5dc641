// SPDX-License-Identifier: MIT
#include "report/json/write_listed.h"

#include <filesystem>
#include <ostream>

#include "base/text/json_line.h"
#include "report/json/steps_json.h"

namespace stepgate {

void write_listed(std::ostream& out, const Scenario& scenario) {
  nlohmann::ordered_json lines = nlohmann::ordered_json::array();
  for (const Expectation& assertion : scenario.expect) {
    lines.push_back(
        {{"name", assertion.name}, {"line", assertion.place.line}, {"text", assertion.text}});
  }
  const nlohmann::ordered_json listed{{"name", scenario.name},
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

}  // namespace stepgate
