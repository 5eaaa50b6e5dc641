// SPDX-License-Identifier: MIT
// The decision: one outcome for every assertion, with its number, interval, reason and cost. The
// report prints it, and main makes it an exit code.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "device/device.h"
#include "judge/verdict/mechanism.h"
#include "scenario/assertions/expectation.h"
#include "scenario/knobs/described_step.h"

namespace stepgate {

// machine_slower: the step is slower than stored runs allow, and so is its anchor by as much.
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

// Either end may be open. One-sided, each at the level.
struct Bounds {
  double level = 0.95;
  std::optional<double> low;
  std::optional<double> high;
};

// The statistical part of a timed assertion. Ratios are left side / right side.
struct TimedEvidence {
  double ratio = 1;  // in a typical round: where evidence above and below balance
  std::optional<RatioInterval> interval;  // confidence sequence of that, valid whenever one looks
  // For an assertion that passes, the one-sided bounds at 1 - beta that decided when it was shown,
  // on the sides that it claims. They are within the limit, though the interval need not be.
  Bounds shown;
  std::optional<double> total_ratio;  // of total time over the scored steps, where sides are times
  // A typical round would decide it, and total time is on the other side of the limit.
  bool held_back_by_total = false;
  // E-values when the assertion was decided, or after the last round.
  double evidence_for = 1;      // that the assertion is true: holds at 1 / beta
  double evidence_against = 1;  // that it is false: failed at 1 / alpha
  std::optional<double>
      smallest_seen;  // smallest relative change that these rounds could have shown
  std::optional<double> rounds_missing;  // undecided: estimate of the rounds still needed
  // log(left / right) of every round, in order, less what the slots are expected to add. For high
  // percentiles it is a count: TailCounts::add of base/stats/tail_counts.h.
  std::vector<double> contrasts;
  std::int64_t earlier_rounds = 0;         // how many of them are of earlier runs: the first ones
  std::vector<double> earlier_times = {};  // EarlierRounds::times of those
};

// A measured assertion in the terms that its author wrote: the ratio of two metrics, the value of
// one, or the ratio of its sides. In base units.
struct Estimate {
  double value = 0;
  std::optional<RatioInterval>
      interval;  // of a comparison: that of TimedEvidence; of a level: its range
  double limit = 0;
  std::optional<MetricUnit> unit;  // absent: a factor
};

// An assertion that is not randomised, such as one variant against a number: the rounds say where
// it lies and not how surely.
struct NotRandomised {
  double typical = 1;               // left side / right side: the median of the rounds
  RatioInterval range;              // of the rounds
  std::vector<double> contrasts;    // log(left / right) of every round, in order
  std::int64_t earlier_rounds = 0;  // how many of them are of earlier runs: the first ones
  std::int64_t outliers = 0;        // how many lie on the other side of the limit than most
};

// A difference in time taken apart. Ratios are left variant / right variant; time = cycles / clock.
struct ClockSplit {
  std::string left;
  std::string right;
  double time_ratio = 1;
  double cycle_ratio = 1;
  double clock_ratio = 1;
  double left_hertz = 0;
  double right_hertz = 0;
};

// Stored runs for which something is drawn only once are one unit.
enum class StoredUnit { run, session, device };

// Against stored runs, with the prediction interval that they allow; nothing of it with too few
// units.
struct StoredValue {
  double ratio = 1;
  std::optional<RatioInterval> interval;
  std::optional<double> deviation;  // of single runs of different units, relative
};

// A note on an assertion about stored runs besides its outcome.
enum class StoredNote {
  none,
  machine_is_slower,    // failed: so is the step beside its anchor
  machine_is_faster,    // not comparable: that alone carries the step over its limit
  anchor_moved,         // undecided: beyond the limit beside an anchor that moved, within it alone
  raw_is_not_shown,     // undecided: within the limit beside the anchor, and alone not shown to be
  refresh_the_baseline  // holds: better than the stored runs by more than the assertion tolerates
};

// The statistical part of a timed assertion about stored runs.
struct StoredEvidence {
  std::int64_t runs = 0;  // that this one was compared with
  StoredUnit unit = StoredUnit::run;
  std::vector<std::int64_t> runs_of_units;
  // In whose mean: this run and earlier ones, up to the one that decided.
  std::int64_t new_runs = 1;
  StoredValue normalised;   // left side / right side, of times divided by the anchor's
  StoredValue raw;          // the same of the times themselves
  StoredValue anchor;       // its time / its time then
  std::string anchor_name;  // "hbm.1"
  double raw_then = 0;      // the metric itself, in its base unit
  double raw_now = 0;
  StoredNote note = StoredNote::none;
  std::vector<std::string> commits;      // of the stored runs, each once, in their order
  std::string newest;                    // date of the latest of them
  std::string upgrades;                  // "driver 580.65.06 -> 580.95.05", since that one
  std::optional<double> smallest_shown;  // change beyond the limit that is shown in 80 % of runs
  std::vector<double> stored_contrasts;  // log(step time / anchor's) of each run, unit by unit
  double contrast = 0;                   // of this run
  std::vector<double> stored_anchors;    // log(anchor's seconds), likewise
  double anchor_contrast = 0;
};

struct AssertionVerdict {
  std::string name;
  std::string text;
  Place place;
  Evidence evidence = Evidence::plan;
  Outcome outcome = Outcome::undecided;
  std::optional<double> left;  // values of the sides in base units, where they are known
  std::optional<double> right;
  MetricUnit unit = MetricUnit::ratio;
  std::optional<TimedEvidence> timed;
  std::optional<NotRandomised> not_randomised;
  std::optional<Estimate> estimate;
  std::optional<StoredEvidence> stored;
  bool about_stored_runs = false;
  bool in_doubt = false;             // undecided because its rounds are not to be trusted
  std::string reason;                // one sentence in words
  std::optional<ClockSplit> clocks;  // about two variants' times, where their clocks are known
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
  std::map<Metric, double> counts;  // that assertions name, by the plan, in base units
  std::optional<AllocatorSimulation>
      allocator_simulation;  // of the step's own allocator, by the plan
};

struct Verdict {
  std::string scenario;
  std::string claim;
  std::vector<DescribedStep> steps;  // of the variants, in the words of a scenario file
  DeviceIdentity device;
  bool planned_only = false;  // no device took part
  std::vector<VariantSummary> variants;
  std::int64_t batch_bytes = 0;  // what assertions mean by them
  std::int64_t param_bytes = 0;
  std::vector<AssertionVerdict> regime;
  std::vector<AssertionVerdict> assertions;
  Outcome outcome = Outcome::undecided;  // the worst of the assertions
  std::optional<std::string> broken;     // the run itself cannot be trusted, in words: exit 2
  std::optional<std::string> failed;     // the device failed half-way, in words: exit 3
  bool not_run = false;         // failed before its turn: an earlier scenario lost the device
  std::string skipped_because;  // a requirement that the machine does not meet
  double alpha = 0.01;          // P(failed) at most this when the assertion is true
  double suite_alpha = 0.01;    // P(any of suite_lines failed) when all are true
  std::int64_t suite_lines = 1;
  double beta = 0.05;             // P(holds) at most this when it is false
  std::int64_t stored_lines = 1;  // timed assertions about stored runs, which share suite_alpha too
  double confidence = 0.95;       // of the intervals
  // Events around the GPU, in words; nothing where the device has no surroundings.
  std::vector<std::string> environment;
  std::optional<std::string> disturbance;  // why no timed assertion is decided
  std::vector<std::string> notes;          // what a reader of the numbers should know
  std::size_t notes_told_always = 0;       // the first of them, also where everything passes
  std::optional<Calibrated> calibrated;    // the knob that the run gave its value
  std::optional<Mechanism> mechanism;      // absent when nobody asked for a trace
  // The unit of evidence is the round: every variant loaded anew.
  std::int64_t rounds = 0;
  std::int64_t earlier_rounds = 0;  // that this run went on from, and the runs that measured them
  std::int64_t earlier_runs = 0;
  std::int64_t loads_per_round = 0;  // of every variant
  std::chrono::nanoseconds device_time{0};
  std::chrono::nanoseconds wall_time{0};
};

// The worst: failed, then machine_slower, not_comparable, no_baseline, undecided, skipped, holds:
// what more evidence decides is better than what it does not. Without assertions it is undecided,
// since nothing was shown.
Outcome worst(const std::vector<AssertionVerdict>&);

}  // namespace stepgate
