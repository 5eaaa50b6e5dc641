// SPDX-License-Identifier: MIT
#include "report/text/print_results.h"

#include <fmt/format.h>

#include <ostream>
#include <string>
#include <string_view>
#include <vector>

#include "base/text/number_words.h"
#include "judge/verdict/words.h"
#include "report/text/table.h"

namespace stepgate {
namespace {

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

std::string values_in_words(const std::vector<SweepPoint>& points) {
  std::string words;
  for (const SweepPoint& point : points) words += (words.empty() ? "" : ", ") + point.value;
  return words.empty() ? "-" : words;
}

void print_points(std::ostream& out, const std::vector<MatchedPoints>& sweeps) {
  if (sweeps.empty()) return;
  out << "points of sweeps, matched by the value of the knob\n";
  std::vector<std::vector<std::string>> rows{
      {"scenario", "knob", "in both", "before alone", "after alone"}};
  for (const MatchedPoints& sweep : sweeps) {
    rows.push_back({sweep.scenario, sweep.knob, values_in_words(sweep.both),
                    values_in_words(sweep.before), values_in_words(sweep.after)});
  }
  print_table(out, {Align::left, Align::left, Align::left, Align::left, Align::left}, rows);
  out << '\n';
}

}  // namespace

std::string answer_of(const ComparedResults& both) {
  if (!both.same_device) return "not comparable: the devices differ";
  if (both.facts.empty()) return "nothing exact differs";
  return counted_in_words(std::ssize(both.facts), "fact") + " differ";
}

void print_results(std::ostream& out, const ComparedResults& both) {
  print_differences(out, "devices and versions that differ", both.provenance);
  print_points(out, both.sweeps);
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

ExitCode exit_code(const ComparedResults& both) {
  if (!both.same_device) return ExitCode::not_gated;
  return both.facts.empty() ? ExitCode::passes : ExitCode::fails;
}

}  // namespace stepgate
