// SPDX-License-Identifier: MIT
// What was decided: one outcome for every sentence, with its number, interval, reason and cost.
// Printing is report's, the exit code main's.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "device/device.h"
#include "scenario/expectation.h"

namespace stepgate {

enum class Outcome { holds, refuted, undecided, skipped, no_baseline, not_comparable };

struct Interval {
  double low = 0;
  double high = 0;
};

// The statistical part of a timed sentence. Ratios are left side / right side.
struct TimedEvidence {
  double ratio = 1;                  // estimate
  std::optional<Interval> interval;  // confidence sequence of the ratio, valid whenever one looks
  // The largest e-values so far: a sentence keeps the outcome that it reached first.
  double evidence_for = 1;      // that the sentence is true: holds at 1 / beta
  double evidence_against = 1;  // that it is false: refuted at 1 / alpha
  std::optional<double>
      smallest_seen;  // smallest relative change that these rounds could have shown
  std::optional<double> rounds_missing;  // undecided: estimate of the rounds still needed
  std::vector<double> contrasts;         // log(left / right) of every round, in order
};

// The statistical part of a timed sentence about stored runs.
struct StoredEvidence {
  std::int64_t runs = 0;                 // that this one was compared with
  double ratio = 1;                      // left side / right side
  std::optional<Interval> interval;      // prediction interval of the ratio; absent with one run
  std::optional<double> deviation;       // from run to run, relative
  std::optional<double> smallest_shown;  // change beyond the limit that is shown in 80 % of runs
  std::vector<double> stored_contrasts;  // log(step time / anchor's) of each stored run
  double contrast = 0;                   // of this run
};

struct SentenceVerdict {
  std::string name;
  std::string text;
  Place place;
  Evidence evidence = Evidence::plan;
  Outcome outcome = Outcome::undecided;
  std::optional<double> left;  // values of the sides in base units, where they are known
  std::optional<double> right;
  MetricUnit unit = MetricUnit::ratio;
  std::optional<TimedEvidence> timed;
  std::optional<StoredEvidence> stored;
  std::string reason;  // one sentence in words
};

struct VariantSummary {
  std::string name;
  std::optional<double> step_seconds_mean;
  std::optional<double> step_seconds_p50;
  std::optional<double> step_seconds_p95;
  std::optional<double> samples_per_second;
  std::optional<double> host_share;
  std::int64_t peak_bytes = 0;
};

struct Verdict {
  std::string scenario;
  std::string claim;
  DeviceIdentity device;
  std::vector<VariantSummary> variants;
  std::vector<SentenceVerdict> regime;
  std::vector<SentenceVerdict> sentences;
  Outcome outcome = Outcome::undecided;  // the worst of the sentences
  std::optional<std::string> broken;     // the run itself cannot be trusted, in words: exit 2
  std::string skipped_because;           // a requirement that the machine does not meet
  double alpha = 0.01;                   // P(refuted) at most this when the sentence is true
  double beta = 0.05;                    // P(holds) at most this when it is false
  double confidence = 0.95;              // of the intervals
  std::vector<std::string> notes;        // what a reader of the numbers should know
  std::int64_t rounds = 0;
  std::chrono::nanoseconds device_time{0};
  std::chrono::nanoseconds wall_time{0};
};

// The worst: refuted, then undecided, not_comparable, no_baseline, skipped, holds. Of no sentences:
// undecided, since nothing was shown.
Outcome worst(const std::vector<SentenceVerdict>&);

}  // namespace stepgate
