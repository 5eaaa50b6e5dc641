// SPDX-License-Identifier: MIT
// The verdict: one outcome for every assertion, with its number, interval, reason and cost. The
// report prints it, and main converts it to an exit code.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "device/device.h"
#include "judge/verdict/mechanism.h"
#include "program/count_steps.h"
#include "scenario/assertions/expectation.h"
#include "scenario/knobs/described_step.h"

namespace stepgate {

// machine_slower: the step is slower than stored runs allow, and its anchor is slower by as much.
enum class Outcome {
  passes,
  fails,
  undecided,
  skipped,
  no_baseline,
  not_comparable,
  machine_slower
};

struct RatioInterval {
  double low = 0;
  double high = 0;
};

// Either end may be open. Each end is one-sided at the level.
struct Bounds {
  double level = 0.95;
  std::optional<double> low;
  std::optional<double> high;
};

// The statistical part of a timed assertion. Ratios are left side / right side.
struct TimedEvidence {
  double ratio = 1;  // in a typical round: evidence for more and for less balance
  std::optional<RatioInterval> interval;  // confidence sequence of the ratio, valid at every round
  // For a passing assertion, the one-sided bounds at 1 - beta on the sides that it claims, when
  // each was shown. They are within the limit, though the interval need not be.
  Bounds shown;
  std::optional<double> total_ratio;  // of total time over the scored steps; only for times
  // True where a typical round would decide it, but total time is on the other side of the limit.
  bool held_back_by_total = false;
  // E-values when the assertion was decided, or after the last round.
  double evidence_for = 1;      // that it is true: it passes at 1 / beta
  double evidence_against = 1;  // that it is false: it fails at 1 / alpha
  std::optional<double>
      smallest_seen;  // smallest relative change that these rounds could have shown
  std::optional<double> rounds_missing;  // undecided: estimate of the rounds still needed
  // log(left / right) of every round, in order, corrected for the expected effect of slots. For
  // high percentiles it is a count: TailCounts::add of base/stats/tail_counts.h.
  std::vector<double> contrasts;
  std::int64_t earlier_rounds = 0;         // the first ones, from earlier runs
  std::vector<double> earlier_times = {};  // EarlierRounds::times of the earlier rounds
};

// A measured assertion in the terms of its author: the ratio of two metrics, the value of one
// metric, or the ratio of its sides. In base units.
struct Estimate {
  double value = 0;
  std::optional<RatioInterval>
      interval;  // for a comparison that of TimedEvidence, for a level its range
  double limit = 0;
  std::optional<MetricUnit> unit;  // absent for a factor
};

// Evidence for an assertion without randomisation, such as one variant against a number: its rounds
// show where it lies, without an error rate.
struct NotRandomised {
  double typical = 1;               // left side / right side, median of the rounds
  RatioInterval range;              // of the rounds
  std::vector<double> contrasts;    // log(left / right) of every round, in order
  std::int64_t earlier_rounds = 0;  // the first ones, from earlier runs
  std::int64_t outliers = 0;        // rounds on the other side of the limit than most
};

// A difference in time, split into cycles and clock. Ratios are left variant / right variant; time
// = cycles / clock.
struct ClockSplit {
  std::string left;
  std::string right;
  double time_ratio = 1;
  double cycle_ratio = 1;
  double clock_ratio = 1;
  double left_hertz = 0;
  double right_hertz = 0;
};

// Stored runs that share random conditions form one unit.
enum class StoredUnit { run, session, device };

// A comparison with stored runs and their prediction interval, which is absent with too few units.
struct StoredValue {
  double ratio = 1;
  std::optional<RatioInterval> interval;
  std::optional<double> deviation;  // standard deviation of runs of different units, relative
};

// A note on an assertion about stored runs besides its outcome.
enum class StoredNote {
  none,
  machine_is_slower,    // fails: the step is slower beside its anchor too
  machine_is_faster,    // not comparable: only the faster machine changes the outcome
  anchor_moved,         // undecided: beyond the limit beside a changed anchor, within it alone
  raw_is_not_shown,     // undecided: within the limit beside the anchor, not shown alone
  refresh_the_baseline  // passes: better than stored runs by more than is tolerated
};

// The statistical part of a timed assertion about stored runs.
struct StoredEvidence {
  std::int64_t runs = 0;  // stored runs that this one is compared with
  StoredUnit unit = StoredUnit::run;
  std::vector<std::int64_t> runs_of_units;
  // Number of runs in the mean: this run and earlier ones, up to the one that decided.
  std::int64_t new_runs = 1;
  StoredValue normalised;   // left side / right side, of times divided by the anchor's time
  StoredValue raw;          // left side / right side, of undivided times
  StoredValue anchor;       // anchor's time / its time in the stored runs
  std::string anchor_name;  // "hbm.1"
  double raw_then = 0;      // the metric itself, in its base unit
  double raw_now = 0;
  StoredNote note = StoredNote::none;
  std::vector<std::string> commits;      // of the stored runs, without duplicates, in order
  std::string newest;                    // date of the latest stored run
  std::string upgrades;                  // "driver 580.65.06 -> 580.95.05", since that one
  std::string other_builds;              // of the user's kernels, then and now, in words
  std::optional<double> smallest_shown;  // change beyond the limit that is shown in 80 % of runs
  std::vector<double> stored_contrasts;  // log(step time / anchor's) of each run, unit by unit
  double contrast = 0;                   // of this run
  std::vector<double> stored_anchors;    // log(anchor's seconds) of each stored run
  double anchor_contrast = 0;
};

struct AssertionVerdict {
  std::string name;
  std::string text;
  Place place;
  Evidence evidence = Evidence::plan;
  Outcome outcome = Outcome::undecided;
  std::optional<double> left;  // values of the sides in base units; absent if unknown
  std::optional<double> right;
  MetricUnit unit = MetricUnit::ratio;
  std::optional<TimedEvidence> timed;
  std::optional<NotRandomised> not_randomised;
  std::optional<Estimate> estimate;
  std::optional<StoredEvidence> stored;
  bool about_stored_runs = false;
  bool in_doubt = false;             // undecided because its rounds cannot be trusted
  std::string reason;                // one sentence in words
  std::optional<ClockSplit> clocks;  // for times of two variants with known clocks
};

struct VariantSummary {
  std::string name;
  std::optional<double> step_seconds_mean;
  std::optional<double> step_seconds_p50;
  std::optional<double> step_seconds_p95;
  std::optional<double> samples_per_second;
  std::optional<double> host_share;
  std::optional<double> sm_clock_hertz;  // mean over the scored steps
  std::optional<double> cycles_per_step;
  std::int64_t peak_bytes = 0;
  std::map<Metric, double> counts;  // counts by the plan that assertions name, in base units
  std::optional<AllocatorSimulation>
      allocator_simulation;  // of the step's own allocator, by the plan
};

struct Verdict {
  std::string scenario;
  std::optional<SweepPoint> point;
  std::string claim;
  std::vector<DescribedStep> steps;  // of the variants, in the words of a scenario file
  DeviceIdentity device;
  bool planned_only = false;  // no device took part
  // Processes of an attached program that used CUDA; absent elsewhere.
  std::optional<std::vector<CountedProcess>> program;
  std::vector<CountedProcess> program_base;  // what they are compared with; may be empty
  std::vector<VariantSummary> variants;
  std::int64_t batch_bytes = 0;  // the values of these names in assertions
  std::int64_t param_bytes = 0;
  std::vector<AssertionVerdict> regime;
  std::vector<AssertionVerdict> assertions;
  Outcome outcome = Outcome::undecided;  // the worst of the assertions
  std::optional<std::string> broken;     // why the run cannot be trusted, in words: exit code 2
  std::optional<std::string> failed;     // why the device failed, in words: exit code 3
  bool not_run = false;                  // not run since an earlier scenario lost the device
  std::string skipped_because;           // a requirement that the device does not meet
  double alpha = 0.01;                   // bound on the probability that a true assertion fails
  double suite_alpha = 0.01;             // bound for any of suite_lines, if all are true
  std::int64_t suite_lines = 1;
  double beta = 0.05;             // bound on the probability that a false assertion passes
  std::int64_t stored_lines = 1;  // timed assertions about stored runs, which share a suite_alpha
  double confidence = 0.95;       // of the intervals
  // Events around the GPU, in words; empty where the device does not report any.
  std::vector<std::string> environment;
  std::optional<std::string> disturbance;  // why no timed assertion is decided
  std::vector<std::string> notes;          // what a reader of the numbers should know
  // Number of first notes that are printed even if everything passes.
  std::size_t notes_told_always = 0;
  std::optional<Calibrated> calibrated;  // the knob that this run calibrated
  std::optional<Mechanism> mechanism;    // absent when no trace was requested
  // The unit of evidence is a round, for which every variant is loaded anew.
  std::int64_t rounds = 0;
  // Rounds that this run continues, and the runs that measured them.
  std::int64_t earlier_rounds = 0;
  std::int64_t earlier_runs = 0;
  std::int64_t loads_per_round = 0;  // of every variant
  // The last step of a launch that was scored, of the variant in which it is the smallest; 0 where
  // no program was timed. What a program does later in a launch cannot have shown.
  std::int64_t last_scored_step = 0;
  std::chrono::nanoseconds device_time{0};
  std::chrono::nanoseconds wall_time{0};
};

// The worst outcome. From worst to best: fails, machine_slower, not_comparable, no_baseline,
// undecided, skipped, passes; outcomes that more evidence can change are better than others.
// Without assertions the result is undecided, since nothing was shown.
Outcome worst(const std::vector<AssertionVerdict>&);

}  // namespace stepgate
