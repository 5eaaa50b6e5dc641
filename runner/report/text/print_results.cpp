// SPDX-License-Identifier: MIT
#include "report/text/print_results.h"

#include <fmt/format.h>

#include <ostream>
#include <string>
#include <string_view>
#include <vector>

#include "base/text/json_line.h"
#include "base/text/number_words.h"
#include "judge/verdict/words.h"
#include "report/text/table.h"

namespace stepgate {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view unpaired =
    "unpaired: the two runs were not interleaved; drift between them is not excluded";

void print_differences(std::ostream& out, std::string_view title,
                       const std::vector<ResultDifference>& differences) {
  if (differences.empty()) return;
  out << title << '\n';
  std::vector<std::vector<std::string>> rows;
  for (const ResultDifference& each : differences) {
    rows.push_back({each.what, each.before.empty() ? "-" : each.before,
                    each.after.empty() ? "-" : each.after});
  }
  print_table(out, {Align::left, Align::left, Align::left}, rows);
  out << '\n';
}

std::string interval_in_words(const TimeOfBoth& time) {
  return time.has_interval
             ? fmt::format("[{}, {}]", factor_in_words(time.low, 2), factor_in_words(time.high, 2))
             : "without rounds there is no interval";
}

std::string answer_of(const ComparedResults& both) {
  if (!both.same_device) return "not comparable: the devices differ";
  if (both.facts.empty()) return "nothing exact differs";
  return counted_in_words(std::ssize(both.facts), "fact") + " differ";
}

Json json_of(const std::vector<ResultDifference>& differences) {
  Json all = Json::array();
  for (const ResultDifference& each : differences) {
    all.push_back({{"what", each.what},
                   {"before", each.before.empty() ? Json(nullptr) : Json(each.before)},
                   {"after", each.after.empty() ? Json(nullptr) : Json(each.after)}});
  }
  return all;
}

}  // namespace

void print_results(std::ostream& out, const ComparedResults& both) {
  print_differences(out, "devices and versions that differ", both.provenance);
  print_differences(out, "steps, counts and outcomes that differ", both.facts);
  if (!both.times.empty()) {
    out << "time of " << (both.kind == "gate" ? "HEAD over BASE" : "a step")
        << ", after over before; " << unpaired << '\n';
    std::vector<std::vector<std::string>> rows;
    for (const TimeOfBoth& time : both.times)
      rows.push_back({time.workload, factor_in_words(time.ratio, 2), interval_in_words(time)});
    print_table(out, {Align::left, Align::right, Align::left}, rows);
    out << '\n';
  }
  out << answer_of(both) << '\n';
}

void write_results_json(std::ostream& out, const ComparedResults& both) {
  Json times = Json::array();
  for (const TimeOfBoth& time : both.times) {
    times.push_back(
        {{"workload", time.workload},
         {"ratio", time.ratio},
         {"interval", time.has_interval ? Json({time.low, time.high}) : Json(nullptr)}});
  }
  out << json_line(Json{{"schema", "stepgate.compare/1"},
                        {"of", both.kind},
                        {"before", both.first},
                        {"after", both.second},
                        {"same_device", both.same_device},
                        {"provenance", json_of(both.provenance)},
                        {"exact", json_of(both.facts)},
                        {"times", {{"what", unpaired}, {"confidence", 0.95}, {"ratios", times}}},
                        {"answer", answer_of(both)},
                        {"exit_code", status_of(exit_code(both))}})
      << '\n';
}

ExitCode exit_code(const ComparedResults& both) {
  if (!both.same_device) return ExitCode::not_gated;
  return both.facts.empty() ? ExitCode::passes : ExitCode::fails;
}

}  // namespace stepgate
