// SPDX-License-Identifier: MIT
// The lines of `stepgate history --json`, schema "stepgate.history/2".
#include <nlohmann/json.hpp>
#include <ostream>

#include "base/text/json_line.h"
#include "judge/verdict/words.h"
#include "report/json/json_parts.h"
#include "report/text/print_history.h"

namespace stepgate {
namespace {

using Json = nlohmann::ordered_json;

constexpr double interval_error = 0.05;

Json trend_json(const std::optional<Drift>& drift) {
  if (!drift) return nullptr;
  const SlopeInterval interval = interval_of(drift->now, interval_error);
  return {{"slope", drift->now.slope},
          {"interval", {interval.low, interval.high}},
          {"alarm", json_or_null(drift->alarm)}};
}

Json alarm_json(const VariantHistory& history) {
  if (!history.drift || !history.drift->alarm) return nullptr;
  const CommitRange commits = commits_of_alarm(history);
  return {{"unit", *history.drift->alarm},
          {"commit_before", commits.before},
          {"commit_after", commits.after}};
}

Json runs_json(const VariantHistory& history) {
  Json runs = Json::array();
  for (const HistoryRun& run : history.runs) {
    runs.push_back({{"date", run.date},
                    {"commit", run.commit},
                    {"device", run.device},
                    {"raw", run.raw},
                    {"normalised", run.normalised},
                    {"period", run.period},
                    {"compared", run.is_compared}});
  }
  return runs;
}

Json changes_json(const VariantHistory& history) {
  Json changes = Json::array();
  for (const HistoryChange& change : history.changes) {
    const CommitRange commits = commits_around(history, change.unit);
    changes.push_back({{"unit", change.unit},
                       {"shift", change.shift},
                       {"commit_before", commits.before},
                       {"commit_after", commits.after}});
  }
  return changes;
}

Json history_json(const VariantHistory& history) {
  Json periods = Json::array();
  for (const HistoryPeriod& period : history.periods)
    periods.push_back({{"why", period.why}, {"runs", period.runs}, {"oldest", period.oldest}});
  Json units = Json::array();
  for (const HistoryUnit& unit : history.units) {
    units.push_back({{"week", unit.week},
                     {"raw", unit.raw},
                     {"normalised", unit.normalised},
                     {"runs", unit.runs}});
  }
  Json line{{"schema", "stepgate.history/2"},
            {"kind", "history"},
            {"scenario", history.scenario},
            {"variant", history.variant},
            {"file", history.file},
            {"device", history.device},
            {"anchor", history.anchor},
            {"outcome", in_words(history.outcome)},
            {"error", history.error},
            {"limit", json_or_null(history.limit)},
            {"oldest", history.oldest},
            {"normalised", trend_json(history.drift)},
            {"raw", trend_json(history.raw_drift)},
            {"alarm", alarm_json(history)},
            {"changes", changes_json(history)},
            {"unit", in_words(history.unit)},
            {"units", std::move(units)},
            {"runs", runs_json(history)},
            {"periods", std::move(periods)}};
  add_point(line, history.point);
  return line;
}

}  // namespace

void write_history_json(std::ostream& out, const RunInfo& run, std::span<const VariantHistory> all,
                        ExitCode code) {
  for (const VariantHistory& history : all) out << json_line(history_json(history)) << '\n';
  out << json_line<Json>({{"schema", "stepgate.history/2"},
                          {"kind", "end"},
                          {"stepgate", run.stepgate},
                          {"build", run.build},
                          {"date", run.date},
                          {"host", run.host},
                          {"variants", all.size()},
                          {"exit_code", status_of(code)}})
      << '\n';
}

}  // namespace stepgate
