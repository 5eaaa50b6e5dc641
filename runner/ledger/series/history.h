// SPDX-License-Identifier: MIT
// How the stored runs of a variant went over the weeks: whether its step creeps, and where it
// jumps. Every single run may be within its limit, and each that is stored widens what the next one
// is compared with. So a drift of 0.3 % a week passes for ever; this looks at all of them.
// stored_assertion.h decides what a run is compared with, and base/stats/drift.h has the tests.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/stats/drift.h"
#include "judge/stored/baseline.h"
#include "judge/verdict/verdict.h"
#include "scenario/scenario.h"

namespace stepgate {

// One stored run of the variant.
struct HistoryRun {
  std::string date;  // as stored
  std::string commit;
  std::string device;        // UUID
  double week = 0;           // since the first run of the variant
  double raw = 0;            // log(seconds a step)
  double normalised = 0;     // log(time / anchor's time)
  std::size_t period = 0;    // index
  bool is_compared = false;  // part of the series
};

// Runs that may be compared with each other, of one device.
struct HistoryPeriod {
  std::string why;  // it began, in words; empty for the first
  std::size_t runs = 0;
  double oldest = 0;  // mean of the normalised values of its first runs, five at most
};

// A unit of the series: a run, or the runs that share the luck that the machine or the device
// deals.
struct HistoryUnit {
  double week = 0;  // since the first run of the variant; means over its runs
  double raw = 0;
  double normalised = 0;
  std::vector<std::size_t> runs;  // indices, in order
};

// Between two units next to each other.
struct HistoryChange {
  std::size_t unit = 0;  // the first that is different
  double shift = 0;      // log(mean after / mean before), up to the changes next to it
};

enum class HistoryOutcome {
  steady,          // no drift is shown
  drifts,          // upwards, beside its anchor and by itself
  machine_drifts,  // by itself, and not beside its anchor
  wanders,         // upwards, and no further than a season or neighbours that are alike do
  too_few          // runs, or weeks, to say anything
};

struct VariantHistory {
  std::string file;  // of the stored runs
  std::string scenario;
  std::string variant;
  std::string device;  // "NVIDIA H200", "a simulated NVIDIA H200"
  std::string anchor;  // of the latest run; empty: a ledger has step times alone, without anchors
  StoredUnit unit = StoredUnit::run;
  std::vector<HistoryRun> runs;        // by date, all
  std::vector<HistoryPeriod> periods;  // as they began
  std::vector<HistoryUnit> units;      // of the series, by date
  double oldest = 0;  // mean of the series' first units, five at most: what all are compared with
  // log of how many times the oldest runs' time an assertion of the scenario allows, where one
  // does.
  std::optional<double> limit;
  double error = 0;            // rate of false alarms a year that was spent on this variant
  std::optional<Drift> drift;  // of normalised values; `alarm` is a unit's index
  std::optional<Drift> raw_drift;
  std::vector<HistoryChange> changes;
  HistoryOutcome outcome = HistoryOutcome::too_few;
};

// A history for every variant of the scenario that has stored runs. The series is what
// matching_runs would compare the latest run with, and that run. Nothing is judged yet. Throws
// RequestError with the file's place for a date that is none.
std::vector<VariantHistory> histories_of(const Baseline&, const Scenario&);

// Whether the series is long enough for a look.
bool is_watched(const VariantHistory&);

// Judges it, false alarms in at most the share `error` of years. A drift is one of the normalised
// values where the raw ones rise too: what only the anchor says may be the anchor's doing. Where
// raw values alone show one, or there is no anchor, it may be the machine's; that has the rate
// `error` of its own.
void judge_drift(VariantHistory&, double error);

// All variants of a call share this rate of false alarms a year in equal parts.
constexpr double drift_error_a_year = 0.01;
void judge_drifts(std::vector<VariantHistory>&);

// The commits of the last run before the unit and of the first in it.
struct CommitRange {
  std::string before;
  std::string after;
};
CommitRange commits_around(const VariantHistory&, std::size_t unit);
// The commits to compare where a drift has its alarm: those of the oldest run that is compared, and
// of the first in the alarm's unit. No two neighbours differ by much.
CommitRange commits_of_alarm(const VariantHistory&);

// Weeks since 1970 of "2026-11-21T10:15:00Z", or of a day alone. Nothing for anything else.
std::optional<double> weeks_of_date(std::string_view date);

// "steady", "drifts", "machine drifts", "too few runs".
std::string_view in_words(HistoryOutcome);

}  // namespace stepgate
