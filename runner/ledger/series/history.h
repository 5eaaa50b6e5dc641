// SPDX-License-Identifier: MIT
// The history of a variant's stored runs over weeks: whether its step time drifts and where it
// jumps. Every single run may be within its limit, and each stored run widens the interval for the
// next one, so that a drift of 0.3 % per week would always pass. This looks at all runs together.
// stored_assertion.h selects the runs for a comparison, and base/stats/drift.h has the tests.
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
  std::string device;  // UUID
  std::string driver;
  double week = 0;        // since the first run of the variant
  double raw = 0;         // log(seconds per step)
  double normalised = 0;  // log(time / anchor's time)
  // Half the 95 % interval of that, by how its rounds scatter; nullopt where they are not stored.
  std::optional<double> half_interval;
  std::size_t period = 0;    // index
  bool is_accepted = false;  // by `accept`; a ledger keeps what `run` measured
  bool is_compared = false;  // in the series
};

// A period of runs on one device that may be compared with each other.
struct HistoryPeriod {
  std::string why;  // why it began, in words; empty for the first period
  std::size_t runs = 0;
  double oldest = 0;  // mean of normalised values over its first runs, at most five
};

// A unit of the series: a run, or all runs that share the random conditions of a session or a
// device.
struct HistoryUnit {
  double week = 0;  // since the first run of the variant, averaged over its runs
  double raw = 0;
  double normalised = 0;
  std::vector<std::size_t> runs;  // indices, in order
};

// A change between two adjacent units.
struct HistoryChange {
  std::size_t unit = 0;  // first unit after the change
  double shift = 0;      // log(mean after / mean before), up to the adjacent changes
};

enum class HistoryOutcome {
  steady,          // no drift is shown
  drifts,          // upwards, both normalised and raw
  machine_drifts,  // raw values only, not normalised ones
  wanders,         // upwards, but within seasonal or correlated variation
  too_few          // too few runs or weeks
};

struct VariantHistory {
  std::string file;  // of the stored runs
  std::string scenario;
  std::optional<SweepPoint> point = {};  // of the scenario
  std::string variant;
  std::string device;  // "NVIDIA H200", "a simulated NVIDIA H200"
  std::string anchor;  // of the latest run; empty where a ledger has only step times
  StoredUnit unit = StoredUnit::run;
  std::vector<HistoryRun> runs;        // all runs, by date
  std::vector<HistoryPeriod> periods;  // in the order in which they began
  std::vector<HistoryUnit> units;      // of the series, by date
  double oldest = 0;  // mean of the series' first units, at most five: the reference for all
  // log of the ratio to the oldest runs' time that an assertion of the scenario allows, if one
  // does.
  std::optional<double> limit;
  double error = 0;            // false alarm rate per year for this variant
  std::optional<Drift> drift;  // of normalised values; `alarm` is the index of a unit
  std::optional<Drift> raw_drift;
  std::vector<HistoryChange> changes;
  HistoryOutcome outcome = HistoryOutcome::too_few;
};

// Returns the history of every variant of the scenario with stored runs, not judged yet. The series
// has the latest run and the runs that matching_runs would compare with it. Throws RequestError
// with the place in the file for an invalid date.
std::vector<VariantHistory> histories_of(const Baseline&, const Scenario&);

// The log of a run's change from the oldest runs that it is compared with: those of the series,
// or of its own period.
double change_from_oldest(const VariantHistory&, const HistoryRun&);

// Returns whether the series is long enough to be judged.
bool is_watched(const VariantHistory&);

// Judges the history, with false alarms in at most the share `error` of years. The step drifts
// where both normalised and raw values rise; a rise of normalised values alone may come from the
// anchor. Where only raw values rise, or there is no anchor, it may be the machine, which has a
// separate rate `error`.
void judge_drift(VariantHistory&, double error);

// The false alarm rate per year that all variants of a call share equally.
constexpr double drift_error_a_year = 0.01;
void judge_drifts(std::vector<VariantHistory>&);

// The commits of the last run before a unit and of the first run in it.
struct CommitRange {
  std::string before;
  std::string after;
};
CommitRange commits_around(const VariantHistory&, std::size_t unit);
// The commits to compare after an alarm: those of the oldest compared run and of the first run in
// the alarm's unit. Adjacent runs differ too little.
CommitRange commits_of_alarm(const VariantHistory&);

// Weeks since 1970 of "2026-11-21T10:15:00Z" or of a date alone; nullopt for other text.
std::optional<double> weeks_of_date(std::string_view date);

// "steady", "drifts", "machine drifts", "too few runs".
std::string_view in_words(HistoryOutcome);

}  // namespace stepgate
