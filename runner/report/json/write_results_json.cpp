// SPDX-License-Identifier: MIT
// The line of `stepgate compare --json`, schema "stepgate.compare/1".
#include <nlohmann/json.hpp>
#include <ostream>
#include <vector>

#include "base/text/json_line.h"
#include "judge/verdict/words.h"
#include "report/json/json_parts.h"
#include "report/text/print_results.h"

namespace stepgate {
namespace {

using Json = nlohmann::ordered_json;

Json json_of(const std::vector<SweepPoint>& points) {
  Json values = Json::array();
  for (const SweepPoint& point : points) values.push_back(value_json(point));
  return values;
}

Json json_of(const std::vector<ResultDifference>& differences) {
  Json all = Json::array();
  for (const ResultDifference& each : differences) {
    all.push_back({{"what", each.what},
                   {"before", each.before.empty() ? Json(nullptr) : Json(each.before)},
                   {"after", each.after.empty() ? Json(nullptr) : Json(each.after)}});
    add_point(all.back(), each.point);
  }
  return all;
}

}  // namespace

void write_results_json(std::ostream& out, const ComparedResults& both) {
  Json times = Json::array();
  for (const TimeOfBoth& time : both.times) {
    times.push_back(
        {{"workload", time.workload},
         {"ratio", time.ratio},
         {"interval", time.has_interval ? Json({time.low, time.high}) : Json(nullptr)}});
    add_point(times.back(), time.point);
  }
  Json points = Json::array();
  for (const MatchedPoints& sweep : both.sweeps) {
    points.push_back({{"scenario", sweep.scenario},
                      {"knob", sweep.knob},
                      {"both", json_of(sweep.both)},
                      {"before", json_of(sweep.before)},
                      {"after", json_of(sweep.after)}});
  }
  out << json_line(Json{{"schema", "stepgate.compare/1"},
                        {"of", both.kind},
                        {"before", both.first},
                        {"after", both.second},
                        {"same_device", both.same_device},
                        {"points", points},
                        {"provenance", json_of(both.provenance)},
                        {"exact", json_of(both.facts)},
                        {"times", {{"what", unpaired}, {"confidence", 0.95}, {"ratios", times}}},
                        {"answer", answer_of(both)},
                        {"exit_code", status_of(exit_code(both))}})
      << '\n';
}

}  // namespace stepgate
