// SPDX-License-Identifier: MIT
// Earlier runs of a scenario, as they are kept: values, and what they mean. What `accept` stored
// and what a ledger keeps are runs of this one kind. baseline_file.h reads and writes the files,
// and stored_assertion.h decides.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "judge/earlier_evidence.h"
#include "judge/environment/environment.h"
#include "judge/verdict/sides.h"
#include "measure/rounds/measurement.h"
#include "measure/subject.h"
#include "scenario/scenario.h"

namespace stepgate {

// Rounds that are stored of every run, the first ones, so that all runs are alike.
constexpr std::int64_t rounds_of_stored_run = 12;

struct StoredTime {
  Metric metric = Metric::step_ms_mean;
  std::vector<double> contrasts;  // log(value / anchor's mean step time) in each round
};

struct StoredCount {
  Metric metric = Metric::launches_per_step;
  double value = 0;
};

struct StoredVariant {
  std::string name;
  std::uint64_t knobs = 0;    // fingerprint
  std::string anchor;         // "hbm.1"
  std::string libraries;      // "cuDNN 9.14.0"; empty where its steps depend on none
  double step_seconds = 0;    // for readers only: comparisons use the contrasts
  double anchor_seconds = 0;  // likewise
  std::vector<StoredTime> times;
  std::vector<StoredCount> counts;
};

// Where a run comes from; none of it decides whether it may be compared, except that a run of a
// ledger is not compared with those of its own subject or build.
struct Provenance {
  std::string date;  // "2026-11-21T10:15:00Z"
  std::string commit;
  std::string stepgate;        // version
  std::uint64_t scenario = 0;  // fingerprint
  std::uint64_t seed = 0;
  std::string boot;          // a number for the boot of the machine; empty where nobody knew
  std::string subject = {};  // what was under test: printable ASCII; of a ledger's run alone
  std::string build = {};    // digest of its program; likewise
  bool operator==(const Provenance&) const = default;
};

// Seconds a step of each variant, by its name.
using StepTimes = std::map<std::string, double>;

struct StoredRun {
  Provenance provenance;
  // A ledger's run names what its steps depend on, "cuDNN 9.14.0", and the digest of the run before
  // it of the same pair, so that a run that is taken out of the middle is missed.
  std::string libraries = {};
  std::string after = {};
  // Why earlier runs that it could be compared with count no more; empty where they do.
  std::string baseline_reset;
  Environment environment;
  std::vector<StoredVariant> variants;  // none of a run that is nothing to compare with
  StepTimes step_seconds = {};          // for `history`: of a run of a ledger without variants
  EarlierEvidence found = {};           // in its own rounds; nothing in what `accept` stored
};

// The runs of a scenario on a device model: a file of baselines/, or of a ledger.
struct Baseline {
  std::string file;
  std::string scenario;
  std::vector<StoredRun> runs;  // in the order in which they were added
};

// Whether rounds of the one go on from those of the other: runs of one subject, of one scenario's
// text, on one device with the same software.
bool is_same_pair(const StoredRun&, const StoredRun&);

// Times are stored for every round, and a plan's counts as one number.
enum class StoredAs { nothing, times, count };
StoredAs stored_as(const MetricRow&);

// The times that are stored for an assertion about this metric: throughput is that of the mean
// time.
Metric stored_time_of(Metric);

// log(value / anchor) of a timed metric of the variant in one round; `anchor` is the anchor's index
// in the round. Nothing where the device does not know.
std::optional<double> contrast_to_anchor(const Round&, int variant, int anchor, Metric);

// The run as it will be stored. Plans are the measured ones, the scenario's variants first, then
// anchors. At least rounds_of_stored_run rounds.
StoredRun stored_run(const Scenario&, std::span<const Subject>, const Measurement&, Provenance,
                     std::string baseline_reset = "");

// The geometric means over the rounds of a measurement. Nothing of a variant that a round does not
// know the time of.
StepTimes step_times(const Scenario&, std::span<const Subject>, const Measurement&);

// The name of the luck that a machine deals once for all runs that are made in a row, such as
// clocks and neighbours: its boot and the hour, or the day where the boot is not known. A simulated
// device deals everything by the seed, so that each of its runs is a session of its own.
std::string session_of(const StoredRun&);

const StoredVariant* find_variant(const StoredRun&, const std::string& name);
const StoredTime* find_time(const StoredVariant&, Metric);
const StoredCount* find_count(const StoredVariant&, Metric);

}  // namespace stepgate
