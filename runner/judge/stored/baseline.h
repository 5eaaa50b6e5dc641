// SPDX-License-Identifier: MIT
// Stored earlier runs of a scenario: their values and what they mean. `accept` and the ledger both
// store runs in this form. baseline_file.h reads and writes the files, and stored_assertion.h
// decides.
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

// Number of rounds stored for every run; the first ones are stored, so that all runs have equally
// many.
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
  double step_seconds = 0;    // for readers only; comparisons use the contrasts
  double anchor_seconds = 0;  // for readers only, too
  std::vector<StoredTime> times;
  std::vector<StoredCount> counts;
};

// The origin of a run. It does not decide whether runs may be compared, except that a run of a
// ledger is not compared with runs of its own subject or build.
struct Provenance {
  std::string date;  // "2026-11-21T10:15:00Z"
  std::string commit;
  std::string stepgate;        // version of stepgate
  std::uint64_t scenario = 0;  // fingerprint of the scenario
  std::uint64_t seed = 0;
  std::string boot;          // identifies the boot of the machine; empty if unknown
  std::string subject = {};  // the tested version: printable ASCII; only in ledgers
  std::string build = {};    // digest of its program; only in ledgers
  bool operator==(const Provenance&) const = default;
};

// Seconds per step, by name of the variant.
using StepTimes = std::map<std::string, double>;

struct StoredRun {
  Provenance provenance;
  // In a ledger's run: the libraries that its steps depend on, such as "cuDNN 9.14.0", and the
  // digest of the previous run of the same pair, so that a removed run is noticed.
  std::string libraries = {};
  std::string after = {};
  // Why earlier comparable runs no longer count; empty where they do.
  std::string baseline_reset;
  Environment environment;
  std::vector<StoredVariant> variants;  // empty where nothing is compared with the run
  StepTimes step_seconds = {};          // for `history`: in runs of a ledger without variants
  EarlierEvidence found = {};           // from its own rounds; empty in runs of `accept`
};

// The runs of a scenario on a device model, from a file of baselines/ or from a ledger.
struct Baseline {
  std::string file;
  std::string scenario;
  std::vector<StoredRun> runs;  // in the order in which they were added
};

// Returns whether one run continues the evidence of the other: both have the same subject, scenario
// text, device and software.
bool is_same_pair(const StoredRun&, const StoredRun&);

// Times are stored for every round, and counts of a plan as one number.
enum class StoredAs { nothing, times, count };
StoredAs stored_as(const MetricRow&);

// The time that is stored for an assertion about this metric: for throughput, the mean step time.
Metric stored_time_of(Metric);

// log(value / anchor) of a timed metric of the variant in one round; `anchor` is the anchor's index
// in the round. nullopt where the device does not know a value.
std::optional<double> contrast_to_anchor(const Round&, int variant, int anchor, Metric);

// The run as it will be stored. Subjects are the measured ones: the scenario's variants first, then
// anchors. Needs at least rounds_of_stored_run rounds.
StoredRun stored_run(const Scenario&, std::span<const Subject>, const Measurement&, Provenance,
                     std::string baseline_reset = "");

// The geometric means over the rounds of a measurement. A variant with an unknown time in a round
// is left out.
StepTimes step_times(const Scenario&, std::span<const Subject>, const Measurement&);

// Names the session of a run. Successive runs on a machine share random conditions, such as clocks
// and neighbours. A session is a boot and an hour, or a day where the boot is unknown. On a
// simulated device, all randomness comes from the seed, so each run is a session of its own.
std::string session_of(const StoredRun&);

const StoredVariant* find_variant(const StoredRun&, const std::string& name);
const StoredTime* find_time(const StoredVariant&, Metric);
const StoredCount* find_count(const StoredVariant&, Metric);

}  // namespace stepgate
